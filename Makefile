# Everything runs in .venv, which is made when it is missing; docs/lab.md says what a lab is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

LAB_NAME ?= swarmspeed
LAB_NODES ?= 3
LAB_PURGE ?= 0
ROUNDS ?= 5
# The scenarios of `make test`, in an order that works: site must meet nodes that have nothing yet. `make test-all` adds the others.
CI_SCENARIOS ?= smoke site galaxy
MORE_SCENARIOS ?= distribution host_network examples faults fabric gpu_host driver_packages offline proxy
# The releases of DeepSpeed that hostfile and ds_config are compared with.
ORACLE_RELEASES ?= 0.15.4 0.16.9 0.17.6 0.18.9 0.19.8
export LAB_NAME LAB_NODES LAB_PURGE ORACLE_RELEASES

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Molecule would look under extensions/ in a collection, and write to the home folder.
export MOLECULE_GLOB := molecule/*/molecule.yml
export MOLECULE_EPHEMERAL_DIRECTORY = $(CURDIR)/.cache/molecule/$(LAB_NAME)

playbook = ansible-playbook --inventory localhost,

.PHONY: help demo lab example-wheels lab-down bench test test-all lint unit oracle differential molecule venv

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

demo: lab ## from nothing to a finished training job on three local nodes
	ansible-playbook site.yml -i inventories/lab

lab: venv ## local nodes to try things on [LAB_NODES=3] [LAB_NAME=swarmspeed]
	@$(playbook) molecule/default/create.yml
	@echo "Lab $(LAB_NAME) is up: $(if $(filter-out swarmspeed,$(LAB_NAME)),LAB_NAME=$(LAB_NAME) )ansible-playbook site.yml -i inventories/lab"

example-wheels: venv ## what the images of some examples need beyond that of digits (a minute)
	@molecule/default/example_wheels .lab/cache .venv/bin/pip

lab-down: venv ## removes every trace of a lab [LAB_NAME=swarmspeed]; LAB_PURGE=1 also images, cache, engine
	@$(playbook) molecule/default/destroy.yml
	@rm -rf "$(MOLECULE_EPHEMERAL_DIRECTORY)"

bench: lab ## what things take, side by side on the lab [BENCH="launch site"; all without] [ROUNDS=5] [RELEASE=1: into the history]
	@python -m tests.bench --rounds $(ROUNDS) $(if $(RELEASE),--release) $(BENCH)

test: ## everything CI runs, in a lab of its own
	@tests/steps lint unit differential lab-down lab "molecule SCENARIO=$(CI_SCENARIOS)" lab-down

test-all: ## the same with every scenario
	@tests/steps lint unit differential lab-down lab "molecule SCENARIO=$(strip $(CI_SCENARIOS) $(MORE_SCENARIOS))" lab-down

lint: venv ## all linters, ansible-test sanity among them
	ansible-lint
	yamllint .
	ruff check .
	ruff format --check .
	mypy plugins tests inventories molecule
	tests/sanity_check

unit: venv ## unit tests
	pytest tests/unit

oracle: venv
	@tests/oracle/install .cache/oracle $(ORACLE_RELEASES)

differential: oracle ## hostfile and ds_config against DeepSpeed itself [ORACLE_RELEASES="0.16.9 0.19.8"]
	pytest tests/differential

molecule: venv ## scenarios in the lab, which stays up [SCENARIO="a b"; all without] [STEP=verify]
	@rm -rf "$(MOLECULE_EPHEMERAL_DIRECTORY)"
	molecule $(or $(STEP),test --destroy never) --no-command-borders $(if $(SCENARIO),$(addprefix -s ,$(SCENARIO)),--all)

venv:
	@molecule/default/venv .venv requirements.txt requirements-dev.txt
