#!/usr/bin/env python3
"""STAND-IN for NVIDIA's apt repositories: real names and versions, nothing of NVIDIA's in them.

Usage: repository.py FOLDER

Builds packages with dpkg-deb and two states of the repositories, FOLDER/first and FOLDER/second (in which a newer
driver and a newer toolkit have come out), signed with a key that is made here and thrown away: only its public half
stays, FOLDER/key.asc, beside that of another key, FOLDER/other.asc. FOLDER/www points at the state that is served.
A third repository stands in for the distribution: headers of the running kernel, which is not Debian's, and a dkms.

What the packages do: the kernel module's is an ELF file that modinfo reads and no kernel loads; its postinst plays DKMS
and fails while /opt/swarmspeed-stand-in/fail-build names its version, or is an empty line. `nvidia-smi` replays
recordings. The container toolkit's hook and CDI specification give a container the stand-in nvidia-smi and a device
file /dev/nvidia-uvm that nothing serves; those of 1.19.0 give it no nvidia-smi.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from email.utils import formatdate
from pathlib import Path

HERE = Path(__file__).parent
STAND_IN = "/opt/swarmspeed-stand-in"
DRIVERS = ("575.57.08", "580.95.05", "580.105.08")
TOOLKITS = ("1.17.8", "1.18.2", "1.19.0")
LATER = {"580.105.08", "1.19.0"}
"""What is not out yet in the first state."""
UVM = 511
"""The major number of the stand-in's /dev/nvidia-uvm. NVIDIA's module is given any that is free."""
BROKEN = "1.19.0"
"""The toolkit that can be installed and does not work."""


def command(*arguments: str | Path, **options: str) -> str:
    # Ignored below: run() has one overload for each set of options, and these are the caller's
    answer = subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    return str(answer.stdout)


ARCHITECTURE = command("dpkg", "--print-architecture").strip()
MACHINE = os.uname().machine
DIRECTORY = {"aarch64": "sbsa"}.get(MACHINE, MACHINE)
"""How NVIDIA calls the machine in the address of its repository."""


def package(
    folder: Path,
    name: str,
    version: str,
    *,
    depends: str = "",
    conflicts: str = "",
    files: Mapping[str, bytes | str] | None = None,
    scripts: Mapping[str, str] | None = None,
) -> None:
    """Build one package. Files in a folder bin or sbin can be executed."""
    with tempfile.TemporaryDirectory() as build:
        root = Path(build)
        root.chmod(0o755)
        for path, content in (files or {}).items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
            target.chmod(0o755 if target.parent.name in ("bin", "sbin") else 0o644)
        control = root / "DEBIAN"
        control.mkdir(exist_ok=True)
        fields = {
            "Package": name,
            "Version": version,
            "Architecture": ARCHITECTURE,
            "Maintainer": "the scenario gpu_host <nobody@example.invalid>",
            "Depends": depends,
            "Conflicts": conflicts,
            "Description": "STAND-IN of the scenario gpu_host, nothing of NVIDIA's",
        }
        control.joinpath("control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items() if value))
        for script, text in (scripts or {}).items():
            control.joinpath(script).write_text(f"#!/bin/sh\nset -e\n{text}")
            control.joinpath(script).chmod(0o755)
        command("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, folder)


def module_file(version: str, licence: str) -> bytes:
    """Return an ELF file with what modinfo reads: no code, so nothing could load it."""
    reported = "".join(f"{line}\0" for line in (f"version={version}", f"license={licence}", "name=nvidia")).encode()
    names = b"\0.modinfo\0.shstrtab\0"
    body = reported + names
    body += b"\0" * (-len(body) % 8)
    number = {"x86_64": 62, "aarch64": 183}.get(MACHINE, 62)
    start = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    header = start + struct.pack("<HHIQQQIHHHHHH", 1, number, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 3, 2)

    def section(name: int, kind: int, flags: int, offset: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, offset, size, 0, 0, 1, 0)

    sections = bytes(64) + section(1, 1, 2, 64, len(reported)) + section(10, 3, 0, 64 + len(reported), len(names))
    return header + body + sections


def driver(folder: Path, version: str) -> None:
    """Build the packages of a driver, as NVIDIA's repository for Debian names them."""
    full = f"{version}-1"
    for name, other, licence in (
        ("nvidia-kernel-open-dkms", "nvidia-kernel-dkms", "Dual MIT/GPL"),
        ("nvidia-kernel-dkms", "nvidia-kernel-open-dkms", "NVIDIA"),
    ):
        source, tree = f"/usr/src/nvidia-{version}/nvidia.ko", f"/var/lib/dkms/nvidia/{version}"
        build = (
            f"mkdir -p {tree}/build\n"
            f"if [ -e {STAND_IN}/fail-build ] && grep -q '^{version}$\\|^$' {STAND_IN}/fail-build; then\n"
            f"  echo \"stand-in: error: implicit declaration of function 'follow_pfn'\" >{tree}/build/make.log\n"
            '  echo "Error! Bad return status for module build" >&2\n  exit 10\nfi\n'
            'for makefile in /lib/modules/*/build/Makefile; do\n  [ -e "$makefile" ] || continue\n'
            "  kernel=${makefile#/lib/modules/}; kernel=${kernel%%/*}\n"
            f'  install -D -m 0644 {source} "/lib/modules/$kernel/updates/dkms/nvidia.ko"\n  depmod "$kernel"\n'
            f'  mkdir -p "{tree}/$kernel"\ndone\n'
        )
        remove = (
            f"rm -rf {tree}\nfor file in /lib/modules/*/updates/dkms/nvidia.ko; do\n"
            '  [ -e "$file" ] || continue\n  rm -f "$file"\n'
            '  kernel=${file#/lib/modules/}; depmod "${kernel%%/*}" || true\ndone\n'
        )
        package(
            folder,
            name,
            full,
            depends="dkms",
            conflicts=other,
            files={source[1:]: module_file(version, licence)},
            scripts={"postinst": build, "prerm": remove},
        )
    library = f"usr/lib/{MACHINE}-linux-gnu/libnvidia-ml.so"
    package(
        folder,
        "libnvidia-ml1",
        full,
        files={f"{library}.{version}": "a stand-in\n"},
        scripts={
            "postinst": f"ln -sf libnvidia-ml.so.{version} /{library}.1\n",
            "prerm": f"rm -f /{library}.1\n",
        },
    )
    package(
        folder,
        "nvidia-driver-cuda",
        full,
        depends=f"libnvidia-ml1 (= {full}), nvidia-kernel-open-dkms (= {full}) | nvidia-kernel-dkms (= {full})",
        files={"usr/bin/nvidia-smi": (HERE / "nvidia-smi").read_text().replace("@VERSION@", version)},
    )
    manager = (
        f"#!/bin/sh\n# STAND-IN for NVIDIA's fabric manager: has a name and a version, and manages nothing.\n"
        f'if [ "$1" = --version ]; then echo "Fabric Manager version is : {version}"; exit; fi\n'
        f"mkdir -p {STAND_IN}/proc/$$ && echo nv-fabricmanage >{STAND_IN}/proc/$$/comm\nexec sleep infinity\n"
    )
    package(
        folder,
        "nvidia-fabricmanager",
        full,
        files={
            "usr/bin/nv-fabricmanager": manager,
            **unit(
                "nvidia-fabricmanager",
                "/usr/bin/nv-fabricmanager",
                f"ExecStopPost=/bin/sh -c 'grep -sl nv-fabric {STAND_IN}/proc/*/comm | xargs -r rm'",
            ),
        },
        scripts={"postinst": "systemctl daemon-reload\n", "prerm": "systemctl stop nvidia-fabricmanager || true\n"},
    )


def unit(name: str, start: str, more: str = "") -> dict[str, str]:
    text = (
        f"[Unit]\nDescription=STAND-IN for {name}\n[Service]\nExecStart={start}\n{more}\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    return {f"usr/lib/systemd/system/{name}.service": text}


def beside_the_driver(folder: Path) -> None:
    """Build what has versions of its own."""
    status = (
        "#!/bin/sh\n# STAND-IN for dkms: tells what the stand-ins of kernel modules wrote.\n"
        '[ "$1" = status ] || exit 0\ncd /var/lib/dkms/nvidia 2>/dev/null || exit 0\n'
        'for tree in */*; do\n  kernel=${tree#*/}\n  [ "$kernel" = build ] || [ ! -d "$tree" ] ||\n'
        f'    echo "nvidia/${{tree%%/*}}, $kernel, {MACHINE}: installed"\ndone\n'
    )
    package(folder, "dkms", "99~stand.in-1", files={"usr/sbin/dkms": status})
    package(
        folder,
        "nvidia-persistenced",
        "580.95.05-1",
        files=unit("nvidia-persistenced", "/bin/sleep infinity"),
        scripts={"postinst": "systemctl daemon-reload\n", "prerm": "systemctl stop nvidia-persistenced || true\n"},
    )
    kernel = os.uname().release
    if re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", kernel):  # else no package can be called so
        makefile = {f"lib/modules/{kernel}/build/Makefile": "# a stand-in\n"}
        package(folder, f"linux-headers-{kernel}", "1-1", files=makefile)


def toolkit(folder: Path, version: str) -> None:
    """Build the packages of the container toolkit."""
    full = f"{version}-1"
    broken = version == BROKEN
    hook = (
        "#!/bin/sh\n# STAND-IN for NVIDIA's runtime hook: puts the stand-in nvidia-smi into the container.\nset -e\n"
        + (
            'echo "stand-in: this version is broken" >&2\nexit 1\n'
            if broken
            else "where=$(python3 -c 'import json, sys; state = json.load(sys.stdin); "
            'config = json.load(open(state["bundle"] + "/config.json")); '
            'print(state["pid"], config["root"]["path"])\')\n'
            "pid=${where%% *} root=${where#* }\n"
            f'mkdir -p "$root/usr/bin" "$root{STAND_IN}"\ncp /usr/bin/nvidia-smi "$root/usr/bin/"\n'
            f'cp -r {STAND_IN}/machine {STAND_IN}/proc "$root{STAND_IN}/"\n'
            # The container's /dev is mounted in its own namespace alone.
            f'nsenter --target "$pid" --mount -- mknod -m 666 "$root/dev/nvidia-uvm" c {UVM} 0\n'
        )
    )
    mounts = (
        ""
        if broken
        else "".join(
            f"\n    - {{hostPath: {path}, containerPath: {path}, options: [ro, bind]}}"
            for path in ("/usr/bin/nvidia-smi", STAND_IN)
        )
    )
    specification = (
        "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n"
        "  deviceNodes: [{path: /dev/nvidiactl}, {path: /dev/nvidia-uvm}]\n"
        + (f"  mounts:{mounts}\n" if mounts else "")
        + "devices:\n  - name: all\n    containerEdits: {env: [STAND_IN=gpu_host]}\n"
    )
    device = "  - name: \\1\\n    containerEdits: {env: [STAND_IN=gpu_host]}"
    ctk = (
        "#!/bin/sh\n# STAND-IN for nvidia-ctk: makes control nodes that no driver serves, and writes a CDI "
        "specification\n# that mounts the stand-in nvidia-smi and names GPUs and MIG instances as nvidia-smi does.\n"
        "set -e\n"
        'case "$1 $2" in\n  "cdi generate") file=${3#--output=}; mkdir -p "${file%/*}"\n'
        f"    cat >\"$file\" <<'END'\n{specification}END\n"
        "    listed=$(/usr/bin/nvidia-smi -L) || listed=\n"
        # Of GPUs in MIG mode only the instances are described; no machine here has GPUs of both kinds.
        '    case $listed in *MIG*) rows=MIG ;; *) rows=GPU ;; esac\n    echo "$listed" |\n'
        f'      sed -n "s/^ *$rows .*(UUID: \\([^)]*\\)).*/{device}/p" >>"$file"\n    ;;\n'
        '  "system create-dev-char-symlinks") ;;\n'
        '  "system create-device-nodes")\n'
        "    [ -e /dev/nvidiactl ] || mknod -m 666 /dev/nvidiactl c 195 255\n"
        f"    [ -e /dev/nvidia-uvm ] || mknod -m 666 /dev/nvidia-uvm c {UVM} 0\n    ;;\n"
        '  *) echo "stand-in: unknown: nvidia-ctk $*" >&2; exit 2 ;;\nesac\n'
    )
    runtime = '#!/bin/sh\n# STAND-IN for NVIDIA\'s runtime: runc itself.\nexec runc "$@"\n'
    contents: dict[str, dict[str, str]] = {
        "libnvidia-container1": {},
        "libnvidia-container-tools": {},
        "nvidia-container-toolkit-base": {"usr/bin/nvidia-ctk": ctk, "usr/bin/nvidia-container-runtime": runtime},
        "nvidia-container-toolkit": {"usr/bin/nvidia-container-runtime-hook": hook},
    }
    for name, files in contents.items():
        depends = "" if name == "libnvidia-container1" else f"libnvidia-container1 (= {full})"
        if name == "nvidia-container-toolkit":
            depends += f", nvidia-container-toolkit-base (= {full}), libnvidia-container-tools (= {full})"
        package(folder, name, full, depends=depends, files=files)


def index(folder: Path, key: str, home: Path) -> None:
    """Write a flat repository's index over its packages, and sign it."""
    stanzas = []
    for file in sorted(folder.glob("*.deb")):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        fields = command("dpkg-deb", "--field", file)
        stanzas.append(f"{fields}Filename: ./{file.name}\nSize: {file.stat().st_size}\nSHA256: {digest}\n")
    packages = folder / "Packages"
    packages.write_text("\n".join(stanzas))
    content = packages.read_bytes()
    release = (
        f"Origin: stand-in of the scenario gpu_host\nDate: {formatdate(usegmt=True)}\nArchitectures: {ARCHITECTURE}\n"
        f"SHA256:\n {hashlib.sha256(content).hexdigest()} {len(content)} Packages\n"
    )
    gpg(home, "--local-user", key, "--clearsign", "--output", str(folder / "InRelease"), given=release)


def gpg(home: Path, *arguments: str, given: str = "") -> str:
    options = ("--batch", "--yes", "--quiet", "--homedir", str(home), "--pinentry-mode", "loopback", "--passphrase", "")
    return command("gpg", *options, *arguments, input=given)


def place(file: Path) -> str:
    """Return in which repository a package is."""
    if file.name.startswith(("linux-headers-", "dkms_")):
        return "distribution"
    if "container" in file.name:
        return f"libnvidia-container/stable/deb/{ARCHITECTURE}"
    return f"compute/cuda/repos/debian12/{DIRECTORY}"


def state(root: Path, files: Iterable[Path], home: Path) -> None:
    """Lay out one state of the repositories."""
    folders = set()
    for file in files:
        folder = root / place(file)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder)
        folders.add(folder)
    for folder in folders:
        index(folder, "stand-in", home)
    (root / "compute/cuda/repos/debian13").symlink_to("debian12")


def main() -> None:
    """Rebuild everything."""
    root = Path(sys.argv[1])
    shutil.rmtree(root, ignore_errors=True)
    built = root / "built"
    built.mkdir(parents=True)
    for version in DRIVERS:
        driver(built, version)
    for version in TOOLKITS:
        toolkit(built, version)
    beside_the_driver(built)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name, file in (("stand-in", "key.asc"), ("another", "other.asc")):
            gpg(home, "--quick-generate-key", name, "ed25519", "sign", "never")
            (root / file).write_text(gpg(home, "--armor", "--export", name))
        packages = sorted(built.glob("*.deb"))
        early = [file for file in packages if not any(f"_{version}-" in file.name for version in LATER)]
        state(root / "first", early, home)
        state(root / "second", packages, home)
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=False)
    shutil.rmtree(built)
    (root / "www").symlink_to("first")


if __name__ == "__main__":
    main()
