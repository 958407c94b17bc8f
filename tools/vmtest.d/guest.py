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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernels import ROOT, WORK

TESTS = ROOT / "python" / "tests" / "native"
NATIVE = ROOT / ".venv" / "bin" / "sysdock-native"
# Here on both sides: paths in the recordings are right in either place.
SCENES = WORK / "scenes"
# For disks and loop devices, in the order in which they need each other. What a kernel has built in has no file.
MODULES = "virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk loop"
# What the scenes and the guest's start run, and what those read.
PROGRAMS = "sh cat cp dd fallocate fio mkdir mount mv rm rmdir setpriv sleep strace sync tar true uname umount unshare"
SETTINGS = "group hostname ld.so.cache nsswitch.conf passwd"
# Parts of Python's library that are large and not needed.
LEFT_OUT = shutil.ignore_patterns(
    *("test", "site-packages", "dist-packages", "config-*", "idlelib", "ensurepip", "lib2to3"),
    *("tkinter", "__pycache__", "*.a"),
)
MARK = "vmtest: "

# Script of the first file system, which is in memory.
INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for module in {modules}; do
    [ ! -f /$module.ko ] || /bin/busybox insmod /$module.ko
done
/bin/busybox mount -t ext4 /dev/vda /disk && exec /bin/busybox switch_root /disk /vmtest
echo '{mark}the disk cannot be mounted'
/bin/busybox poweroff -f
"""

# Script on the disk. Recordings go to the second disk; for mapped files only the faults are compared.
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
mount -t bpf bpf /sys/fs/bpf
{native} agent run --lake /tmp/lake --spool /tmp/spool --interval 2s &
agent=$!
for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    [ -f /tmp/spool/state.json ] || sleep 1
done
SLURM_JOB_ID=guest sh -c 'cd /tmp && dd if=/dev/zero of=a bs=1000 count=70 && mkdir d && mv a d/b && rm d/b && rmdir d'
echo "{mark}agent $({native} agent print --job guest --spool /tmp/spool --format json)"
kill $agent
wait $agent
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


def fill(disk: Path, programs: str, settings: str, files: Iterable[Path] = ()) -> None:
    """Programs of this machine, Python and other files, with the libraries they load, and settings in /etc: at the places they have here."""
    for name in ("proc", "sys", "dev", "run", "tmp", "root", "var/tmp", "usr/bin"):
        (disk / name).mkdir(parents=True)
    for name in ("tmp", "var/tmp"):
        (disk / name).chmod(0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        if (Path("/") / name).is_symlink():
            (disk / name).symlink_to(os.readlink(f"/{name}"))
    path = f"{os.environ['PATH']}:/sbin:/usr/sbin"
    found = [Path(place) for name in programs.split() if (place := shutil.which(name, path=path))]
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, disk / library.relative_to("/"), ignore=LEFT_OUT)
    brought = [*found, Path(sys.executable).resolve(), NATIVE, *files]
    libraries = libraries_of([*brought, *library.glob("lib-dynload/*.so")])
    for file in {*brought, *libraries, *(Path("/etc") / name for name in settings.split())}:
        if file.exists():
            bring(file, disk)


def make_image(folder: Path, size: str) -> Path:
    """A disk of that size, with what is in the folder, which is removed."""
    image = folder.with_name(f"{folder.name}.img")
    image.unlink(missing_ok=True)
    make = ["/sbin/mke2fs", "-q", "-t", "ext4", "-d", folder, image, size]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder)
    return image


def make_disk() -> Path:
    """The guest's disk, with the compiled programs of all scenes."""
    sys.path.insert(0, str(TESTS))
    from scenes import SCENES as names
    from scenes import build

    folder = WORK / "disk"
    for old in (folder, SCENES):
        shutil.rmtree(old, ignore_errors=True)
    for name in names:
        build(name, SCENES / name)
    fill(folder, PROGRAMS, SETTINGS, [TESTS / "scenes.py", TESTS / "recorders.py"])
    shutil.copytree(SCENES, folder / SCENES.relative_to("/"))
    words = {"python": Path(sys.executable).resolve(), "tests": TESTS, "native": NATIVE, "scenes": SCENES}
    write_start(folder, GUEST.format(mark=MARK, **words))
    return make_image(folder, "3G")


def write_start(disk: Path, script: str) -> None:
    """What the guest runs, once it has its disk."""
    guest = disk / "vmtest"
    guest.write_text(script)
    guest.chmod(0o755)


@contextmanager
def started(kernel: Path, drives: Iterable[str], seconds: float) -> Iterator[subprocess.Popen]:
    """A guest with these drives, which is killed when the time is over, if it has not come to its end."""
    (image,) = kernel.glob("boot/vmlinuz-*")
    # One thread for both processors: with one each, a processor may run code that the kernel has just patched (`int3`), and panic.
    words = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", "2G"]
    words += ["-nic", "none", "-nographic", "-no-reboot", "-kernel", image]
    words += ["-initrd", make_first_memory(kernel), "-append", "console=ttyS0 quiet no_timer_check panic=-1"]
    for drive in drives:
        words += ["-drive", f"if=virtio,format=raw,{drive}"]
    guest = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    limit = threading.Timer(seconds, guest.kill)
    limit.start()
    try:
        yield guest
    finally:
        limit.cancel()
        guest.kill()
        guest.wait()


def lines_of(guest: subprocess.Popen) -> Iterator[str]:
    """What a guest says; the firmware paints on a screen."""
    for line in guest.stdout:
        yield re.sub(r"\x1bc|\x1b\[[\d;?]*[a-zA-Z]", "", line).rstrip()


def boot(kernel: Path, disk: Path, seconds: float, said: list[str]) -> bool:
    """Run a guest, show and collect what it says, and say whether it came to its end; what it recorded is in SCENES then."""
    out = WORK / "out.img"
    out.unlink(missing_ok=True)
    out.touch()
    os.truncate(out, 2 << 30)
    drives = [f"file={disk},cache=unsafe,snapshot=on", f"file={out},cache=unsafe"]
    with started(kernel, drives, seconds) as guest:
        for line in lines_of(guest):
            said.append(line)
            print(f"   {line[:200]}", flush=True)
    shutil.rmtree(SCENES, ignore_errors=True)
    if is_done := f"{MARK}done" in "\n".join(said):
        SCENES.mkdir()
        subprocess.run(["tar", "-S", "-x", "-f", out, "-C", SCENES], check=True)
    out.unlink()
    return is_done
