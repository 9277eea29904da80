# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is run on nodes by more than one part: the stand-ins that a fault puts there, and what takes them away."""

from __future__ import annotations

from tests.playbook_run import CLUSTER_ROOT

STAND_IN = "swarmspeed-chaos"
"""The name of everything that a fault puts onto a node: mounts, packages, marks."""
ETC = f"{CLUSTER_ROOT}/etc"
STOP_ENGINE = "systemctl stop docker.socket docker"
MARK = f"/etc/docker/{STAND_IN}"
"""Says that the image store was switched by a fault, and not by whoever made the lab."""


def small_disk(place: str, mebibytes: int) -> str:
    """Return the script that puts a small disk of its own, with what is there, under a folder."""
    return f"""
mkdir -p /run/{STAND_IN}
cp -a {place}/. /run/{STAND_IN}/
mount -t tmpfs -o size={mebibytes}m,mode=$(stat -c %a {place}) {STAND_IN} {place}
cp -a /run/{STAND_IN}/. {place}/
rm -rf /run/{STAND_IN}
"""


def image_store(of_containerd: bool) -> str:
    """Return the script that switches an engine's store of images, and leaves its other settings."""
    change = (
        'features["containerd-snapshotter"] = True' if of_containerd else 'features.pop("containerd-snapshotter", None)'
    )
    return f"""
python3 - <<'END'
import json, pathlib
path = pathlib.Path("/etc/docker/daemon.json")
config = json.loads(path.read_text()) if path.exists() else {{}}
features = config.setdefault("features", {{}})
{change}
if not features:
    del config["features"]
path.write_text(json.dumps(config, indent=4) + "\\n")
END
{"touch" if of_containerd else "rm -f"} {MARK}
systemctl restart docker
"""


# A mount under the engine's data goes while the engine is stopped.
TIDY = rf"""
mounted=$(awk '$1 == "{STAND_IN}" {{ print $2 }}' /proc/mounts)
case $mounted in *docker*) {STOP_ENGINE} ;; esac
for place in $mounted; do umount -l "$place"; done
case $mounted in *docker*) systemctl start docker ;; esac
if dpkg-query --status {STAND_IN} >/dev/null 2>&1; then dpkg --purge --force-all {STAND_IN} >/dev/null 2>&1; fi
rm -rf /run/{STAND_IN}
if [ -e {MARK} ]; then
{image_store(of_containerd=False)}
fi
"""
