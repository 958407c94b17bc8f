"""A guest under qemu that records all scenes: its disk, its start, and what comes out of it."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

from kernels import ROOT, WORK

TESTS = ROOT / "python" / "tests" / "native"
NATIVE = ROOT / ".venv" / "bin" / "sysdock-native"
# Here on both sides: paths in the recordings are right in either place.
SCENES = WORK / "scenes"
# For disks and loop devices, in the order in which they need each other. What a kernel has built in has no file.
MODULES = "virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk loop"
# What the scenes and the guest's start run, and what those read.
PROGRAMS = (
    "sh cat cp dd fallocate fio mkdir mount mv rm setpriv sleep strace sync tar true uname umount unshare"
)
SETTINGS = "group hostname ld.so.cache nsswitch.conf passwd"
# Parts of Python's library that are large and not needed.
LEFT_OUT = shutil.ignore_patterns(
    *("test", "site-packages", "dist-packages", "config-*", "idlelib", "ensurepip", "lib2to3"),
    *("tkinter", "__pycache__", "*.a"),
)
MARK = "vmtest: "

# Of the first file system, which is in memory.
INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for module in {modules}; do
    [ ! -f /$module.ko ] || /bin/busybox insmod /$module.ko
done
/bin/busybox mount -t ext4 /dev/vda /disk && exec /bin/busybox switch_root /disk /vmtest
echo '{mark}the disk cannot be mounted'
/bin/busybox poweroff -f
"""

# Of the disk. What was recorded goes to the second disk; of the mapped files only the faults are compared.
GUEST = """#!/bin/sh
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t cgroup2 group /sys/fs/cgroup
echo "{mark}kernel $(uname -r)"
{python} -B {tests}/scenes.py {native} {scenes}
tar -S -c -f /dev/vdb --exclude=./mapped_pages/files -C {scenes} . && echo '{mark}done'
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


def make_first_memory(kernel: Path) -> Path:
    """The first file system of the guest: finds the disk."""
    folder = WORK / "first"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("bin", "dev", "disk"):
        (folder / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), folder / "bin" / "busybox")
    for name in MODULES.split():
        for module in kernel.rglob(f"{name}.ko*"):
            data = module.read_bytes()
            (folder / f"{name}.ko").write_bytes(lzma.decompress(data) if module.suffix == ".xz" else data)
    (folder / "init").write_text(INIT.format(modules=MODULES, mark=MARK))
    (folder / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(folder)) for path in folder.rglob("*"))
    pack = ["cpio", "-o", "-H", "newc", "--quiet"]
    packed = subprocess.run(pack, input=names.encode(), cwd=folder, capture_output=True, check=True)
    shutil.rmtree(folder)
    image = WORK / "first.cpio"
    image.write_bytes(packed.stdout)
    return image


def bring(file: Path, disk: Path) -> None:
    """Copy a file to its place on the disk, where that is by all links of its folders."""
    place = disk / (file.parent.resolve() / file.name).relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        shutil.copy2(file, place)


def libraries_of(files: list[Path]) -> set[Path]:
    """What the dynamic linker loads with programs and libraries."""
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True).stdout
    return {Path(name) for name in re.findall(r"(?:=> |^\t)(/\S+) \(0x", listed, re.MULTILINE)}


def fill(disk: Path) -> None:
    """Everything that the guest runs: programs of this machine with their libraries, Python, the scenes and what they run."""
    for name in ("proc", "sys", "dev", "run", "tmp", "root", "var/tmp", "usr/bin"):
        (disk / name).mkdir(parents=True)
    for name in ("tmp", "var/tmp"):
        (disk / name).chmod(0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        if (Path("/") / name).is_symlink():
            (disk / name).symlink_to(os.readlink(f"/{name}"))
    path = f"{os.environ['PATH']}:/sbin"
    programs = [Path(found) for name in PROGRAMS.split() if (found := shutil.which(name, path=path))]
    python = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, disk / library.relative_to("/"), ignore=LEFT_OUT)
    files = [*programs, python, NATIVE, *(Path("/etc") / name for name in SETTINGS.split())]
    files += [TESTS / "scenes.py", TESTS / "recorders.py"]
    for file in {*files, *libraries_of([*programs, python, NATIVE, *library.glob("lib-dynload/*.so")])}:
        if file.exists():
            bring(file, disk)
    shutil.copytree(SCENES, disk / SCENES.relative_to("/"))


def make_disk() -> Path:
    """The guest's disk, with the compiled programs of all scenes."""
    sys.path.insert(0, str(TESTS))
    from scenes import SCENES as names
    from scenes import build

    folder, image = WORK / "disk", WORK / "disk.img"
    for old in (folder, SCENES):
        shutil.rmtree(old, ignore_errors=True)
    for name in names:
        build(name, SCENES / name)
    fill(folder)
    words = {"python": Path(sys.executable).resolve(), "tests": TESTS, "native": NATIVE, "scenes": SCENES}
    guest = folder / "vmtest"
    guest.write_text(GUEST.format(mark=MARK, **words))
    guest.chmod(0o755)
    image.unlink(missing_ok=True)
    make = ["/sbin/mke2fs", "-q", "-t", "ext4", "-d", folder, image, "3G"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder)
    return image


def boot(kernel: Path, disk: Path, seconds: float) -> bool:
    """Run a guest, show what it says, and say whether it came to its end; what it recorded is in SCENES then."""
    out = WORK / "out.img"
    out.unlink(missing_ok=True)
    out.touch()
    os.truncate(out, 2 << 30)
    (image,) = kernel.glob("boot/vmlinuz-*")
    # One thread for both processors: with one each, a processor may run code that the kernel has just patched (`int3`), and panic.
    words = [
        "qemu-system-x86_64",
        "-accel",
        "tcg,thread=single",
        "-cpu",
        "max",
        "-smp",
        "2",
        "-m",
        "2G",
        "-nic",
        "none",
    ]
    words += ["-nographic", "-no-reboot", "-kernel", image, "-initrd", make_first_memory(kernel)]
    words += ["-append", "console=ttyS0 quiet panic=-1"]
    for file, snapshot in ((disk, "on"), (out, "off")):
        words += ["-drive", f"file={file},if=virtio,format=raw,cache=unsafe,snapshot={snapshot}"]
    guest = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    limit = threading.Timer(seconds, guest.kill)
    limit.start()
    said = []
    try:
        for line in guest.stdout:
            # The firmware paints on a screen.
            said.append(re.sub(r"\x1bc|\x1b\[[\d;?]*[a-zA-Z]", "", line).rstrip())
            print(f"   {said[-1]}", flush=True)
    finally:
        limit.cancel()
        guest.kill()
        guest.wait()
    shutil.rmtree(SCENES, ignore_errors=True)
    if is_done := f"{MARK}done" in "\n".join(said):
        SCENES.mkdir()
        subprocess.run(["tar", "-S", "-x", "-f", out, "-C", SCENES], check=True)
    out.unlink()
    return is_done
