# Everything runs in .venv, which is made when it is missing; docs/lab.md says what a lab is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

LAB_NAME ?= swarmspeed
LAB_NODES ?= 3
LAB_PURGE ?= 0
ROUNDS ?= 5
# The scenarios of `make test`, which share one lab. site must meet nodes that have nothing yet.
CI_SCENARIOS ?= smoke site
# What `make test-all` runs, one after another: all checks in full, and each scenario from nodes that have nothing.
SHARDS ?= checks $(CI_SCENARIOS) drifts galaxy init upgrade alone boundaries distribution assets stores host_network fabric faults hangs dead_hosts examples gpu_host cuda_image driver_packages offline proxy docs cores
# 1: also the tests marked slow, every example of the generated inputs, and five releases of DeepSpeed instead of the oldest and the newest.
SLOW ?=
# The releases of DeepSpeed that hostfile and ds_config are compared with.
ORACLE_RELEASES ?= 0.15.4 $(if $(SLOW),0.16.9 0.17.6 0.18.9) 0.19.8
export LAB_NAME LAB_NODES LAB_PURGE
# .venv is installed without bytecode, so each Python may keep what it compiles.
unexport PYTHONDONTWRITEBYTECODE

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Molecule would look under extensions/ in a collection, and write to the home folder.
export MOLECULE_GLOB := molecule/*/molecule.yml
export MOLECULE_EPHEMERAL_DIRECTORY = $(CURDIR)/.cache/molecule/$(LAB_NAME)

playbook = ansible-playbook --inventory localhost,

.PHONY: help demo docs lab lab-parts fresh-lab example-wheels lab-down bench test test-all lint linters sanity unit mutants oracle differential resolve molecule cores \
	chaos chaos-report venv gpu-proof gpu-proof-machine gpu-proof-wheels gpu-proof-table tarball release importer

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

demo: lab ## from nothing to a finished training job on three local nodes
	ansible-playbook site.yml -i inventories/lab

lab: ## local nodes to try things on [LAB_NODES=3] [LAB_NAME=swarmspeed]
	@$(MAKE) --no-print-directory -j2 venv lab-parts
	@$(playbook) molecule/default/create.yml
	@echo "Lab $(LAB_NAME) is up: $(if $(filter-out swarmspeed,$(LAB_NAME)),LAB_NAME=$(LAB_NAME) )ansible-playbook site.yml -i inventories/lab"

fresh-lab: ## the same from nodes that have nothing: removes the lab first
	@$(MAKE) --no-print-directory -j2 venv lab-parts
	@$(playbook) molecule/default/destroy.yml
	@$(playbook) molecule/default/create.yml

example-wheels: venv ## what the images of some examples need beyond that of digits (a minute)
	@molecule/default/example_wheels .lab/cache .venv/bin/pip

# What takes long and needs no Ansible, beside the environment that has it.
lab-parts:
	@molecule/default/engine start .lab/engine >/dev/null
	@molecule/default/artefacts .lab/cache >/dev/null

lab-down: venv ## removes every trace of a lab [LAB_NAME=swarmspeed]; LAB_PURGE=1 also images, cache, engine
	@$(playbook) molecule/default/destroy.yml
	@rm -rf "$(MOLECULE_EPHEMERAL_DIRECTORY)"

bench: lab ## what things take, side by side on the lab [BENCH="launch site"; all without] [ROUNDS=5] [RELEASE=1: into the history]
	@python -m tests.bench --rounds $(ROUNDS) $(if $(RELEASE),--release) $(BENCH)

test: ## everything CI runs, in a lab of its own
	@tests/steps "venv & lab-parts" fresh-lab "lint & unit & differential & molecule SCENARIO=$(CI_SCENARIOS)" lab-down

test-all: ## every check in full, and every scenario from a fresh lab [SHARDS="faults proxy"]
	@tests/steps "venv & lab-parts" $(foreach shard,$(SHARDS),$(if $(filter checks,$(shard)),"lint & unit SLOW=1 & differential SLOW=1 & resolve" importer,shard-$(shard))) lab-down

# For its torch.
shard-hangs: oracle

shard-docs: docs
	pytest tests/docs_site

shard-cores: fresh-lab cores

# Nodes with three engines: 20.10, 26.1 and 28.5.
shard-stores: export LAB_SUITES := bookworm trixie sid

shard-%: fresh-lab
	@$(MAKE) --no-print-directory molecule SCENARIO=$*

gpu-proof-wheels: venv ## what make gpu-proof needs on a machine that reaches no package index: .cache/gpu_proof/wheels
	@python -m tests.gpu_proof wheels

gpu-proof-machine: venv ## servers for the parts "containers …" of make gpu-proof, which travel with the wheels: TOOLKIT=/folder/of/nvidia-ctk (tests/gpu_proof/machine)
	@tests/gpu_proof/machine .cache/gpu_proof/machine "$(TOOLKIT)"

# Without .venv: a machine with a GPU may have nothing but a Python with torch.
gpu-proof: ## this collection's own parts on this machine's GPU [GPU_PYTHON=/path/to/python with torch] [ACCELERATOR=cpu: a rehearsal] [ONLY=regular expression of parts]
	@$(or $(GPU_PYTHON),python3) -m tests.gpu_proof run $(if $(ACCELERATOR),--accelerator $(ACCELERATOR)) $(if $(GPU_PYTHON),--python $(GPU_PYTHON)) $(if $(value ONLY),--only '$(value ONLY)')

gpu-proof-table: venv ## what the proofs found, into docs/gpu_hosts.md
	@python -m tests.gpu_proof table

lint: venv ## all linters, ansible-test sanity among them
	@$(MAKE) --no-print-directory -j2 -Otarget linters sanity

linters: venv
	yamllint .
	ruff check . tests/steps tests/cores
	ruff format --check . tests/steps tests/cores
	mypy plugins tests inventories molecule
	mypy --scripts-are-modules tests/steps tests/cores
	ansible-lint
	antsibull-changelog lint
	reuse lint --quiet

sanity: venv
	tests/sanity_check

unit: venv ## unit tests and attacks [SLOW=1]
	pytest tests/unit tests/adversary -n 2 --dist worksteal $(if $(SLOW),--slow)

# A filter keeps nothing: the results are those of a whole run.
mutants: venv ## breaks the guards one by one, and a test must notice (30 minutes) [ONLY=hub] [NAMED=O_NOFOLLOW] [AGAIN=1: survivors]
	@python -m tests.mutants $(if $(value ONLY),--only '$(value ONLY)') $(if $(value NAMED),--named '$(value NAMED)') $(if $(AGAIN),--again)

oracle: venv
	@tests/oracle/install .cache/oracle $(ORACLE_RELEASES)

differential: oracle ## hostfile and ds_config against DeepSpeed itself [SLOW=1] [ORACLE_RELEASES="0.16.9 0.19.8"]
	ORACLE_RELEASES="$(ORACLE_RELEASES)" pytest tests/differential -n 2 --dist loadgroup $(if $(SLOW),--slow)

docs: venv ## the documentation as a site, without network but for requirements-docs.txt: .cache/docs/site/html/index.html
	@molecule/default/venv .cache/docs/venv requirements-docs.txt
	@PATH="$(CURDIR)/.cache/docs/venv/bin:$$PATH" .cache/docs/venv/bin/python -m tests.docs_site .cache/docs/site

resolve: venv ## the table of versions against the metadata of the package index (3 minutes, 60 MB)
	pytest tests/versions

molecule: venv ## scenarios in the lab, which stays up [SCENARIO="a b"; all without] [STEP=verify]
	@rm -rf "$(MOLECULE_EPHEMERAL_DIRECTORY)"
	molecule $(or $(STEP),test --destroy never) --no-command-borders $(if $(SCENARIO),$(addprefix -s ,$(SCENARIO)),--all)

# ROUNDS is another number here than in bench, so only one that was asked for is passed on.
chaos: venv ## faults on the lab, each followed by site.yml twice and verify.yml [ROUNDS=10] [SEED=17] [ONLY=disk-full] [KEEP_GOING=1]
	@python -m tests.chaos $(if $(filter-out file undefined,$(origin ROUNDS)),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(ONLY),--only $(ONLY)) $(if $(filter 1,$(KEEP_GOING)),--keep-going)

chaos-report: venv ## docs/chaos.md from what make chaos has recorded
	@python -m tests.chaos report --keep

cores: venv ## the other releases of ansible-core, from controllers in containers, on bare nodes of the lab
	@tests/cores

tarball: venv ## the tarball of the last commit, the same bytes each time: build/*.tar.gz
	@python -m tests.release.tarball build

importer: venv ## what Galaxy's importer and ansible-builder say about the tarball: a warning is a failure (3 minutes)
	@tests/release/importer

release: venv ## version, changelog and documents of a release, to be committed (docs/releasing.md): VERSION=1.0.0
	@python -m tests.release.prepare $(VERSION)

venv:
	@molecule/default/venv .venv requirements.txt requirements-dev.txt
