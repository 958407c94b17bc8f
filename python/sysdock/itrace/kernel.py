"""The kernel of a guest, and the modules that it needs to speak with qemu."""

from __future__ import annotations

import lzma
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError
from sysdock.itrace import packages

PACKAGE = "linux-image-cloud-amd64"
# In order of their dependencies. Modules that are built into a kernel have no file.
_MODULES = "virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_console failover"
MODULES = f"{_MODULES} net_failover virtio_net".split()
DISK_MODULES = ["virtio_blk", "crc16", "crc32c_generic", "mbcache", "jbd2", "ext4"]
# Older kernels have the first two inside of virtio_pci; newer ones the third in their library.
_MAY_LACK = ("virtio_pci_legacy_dev", "virtio_pci_modern_dev", "crc32c_generic")


@dataclass
class Kernel:
    """A kernel on disk."""

    image: Path
    modules: Path
    release: str


def find_kernel(name: str | None, cache: Path) -> Kernel:
    """A kernel: an image with its modules in /lib/modules, an unpacked package, or a package of Debian.

    UserError: there is none of that name, or its image cannot be read.
    """
    path = Path(name) if name else None
    if path and path.is_file():
        return _readable(Kernel(path, Path("/lib/modules"), _release(path)))
    if path and path.is_dir():
        return _unpacked(path)
    package = packages.kernel_package(name or PACKAGE)
    folder = cache / package
    if not folder.is_dir():
        [file] = packages.fetch([package], cache)
        new = folder.with_name(f"{package}.new")
        packages.unpack([file], new)
        new.rename(folder)
    return _unpacked(folder)


def _unpacked(folder: Path) -> Kernel:
    images = sorted(folder.glob("boot/vmlinuz-*"))
    if not images:
        raise UserError("no kernel in it (boot/vmlinuz-*)", None, str(folder))
    [*_, image] = images
    modules = next(
        (each for each in (folder / "lib/modules", folder / "usr/lib/modules") if each.is_dir()), folder
    )
    return _readable(Kernel(image, modules, image.name.removeprefix("vmlinuz-")))


def _readable(kernel: Kernel) -> Kernel:
    try:
        kernel.image.open("rb").close()
    except OSError as error:
        hint = "as root, or without --kernel: that of a package is downloaded"
        raise UserError(f"cannot be read: {error.strerror}", hint, str(kernel.image)) from None
    return kernel


def _release(image: Path) -> str:
    """Which kernel it is (Documentation/arch/x86/boot.rst: kernel_version)."""
    with image.open("rb") as opened:
        head = opened.read(1 << 16)
    if head[0x202:0x206] != b"HdrS":
        raise UserError("is not a kernel for x86", "an image as in /boot/vmlinuz-*", str(image))
    start = int.from_bytes(head[0x20E:0x210], "little") + 0x200
    return head[start : head.find(b"\0", start)].decode(errors="replace").split()[0]


def copy_modules(kernel: Kernel, folder: Path, *, has_disk: bool = False) -> None:
    """The modules and their order. UserError: one that qemu needs is neither there nor built in."""
    folder.mkdir(parents=True)
    own = kernel.modules / kernel.release
    listed = own / "modules.builtin"
    built_in = listed.read_text().replace("-", "_") if listed.is_file() else ""
    order, missing = [], []
    for name in MODULES + DISK_MODULES * has_disk:
        files = list(own.rglob(f"{name}.ko*"))
        if files:
            (folder / f"{name}.ko").write_bytes(_plain(files[0]))
            order.append(f"{name}.ko\n")
        elif not re.search(rf"/{name}\.ko", built_in) and name not in _MAY_LACK:
            missing.append(name)
    if missing:
        hint = "a kernel with virtio: that of the package linux-image-cloud-amd64 has it"
        raise UserError(f"lacks modules: {', '.join(missing)}", hint, str(own))
    (folder / "order").write_text("".join(order))


def _plain(module: Path) -> bytes:
    content = module.read_bytes()
    if module.suffix == ".xz":
        return lzma.decompress(content)
    if module.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", module], capture_output=True, check=True).stdout
    return content
