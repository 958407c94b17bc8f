"""Images of ext2, ext3 and ext4 in many variants, made without root, and what e2fsprogs says of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# Some live in /usr/sbin, which users do not search.
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"

VARIANTS: dict[str, tuple[str, ...]] = {
    "ext2_1k": ("-t", "ext2", "-b", "1024"),
    "ext2_first_revision": ("-t", "ext2", "-r", "0", "-b", "4096"),
    "ext3_4k": ("-t", "ext3", "-b", "4096"),
    "ext3_1k_small_inodes": ("-t", "ext3", "-b", "1024", "-I", "128"),
    "default": (),
    "blocks_1k": ("-b", "1024"),
    "blocks_2k": ("-b", "2048"),
    "blocks_64k": ("-b", "65536"),
    "bigalloc_1k": ("-b", "1024", "-O", "bigalloc", "-C", "16384"),
    "bigalloc_4k": ("-b", "4096", "-O", "bigalloc", "-C", "65536"),
    "meta_bg": ("-b", "4096", "-O", "meta_bg,^resize_inode"),
    "meta_bg_1k": ("-b", "1024", "-O", "meta_bg,^resize_inode", "-g", "1024"),
    "meta_bg_bigalloc_1k": ("-b", "1024", "-O", "meta_bg,^resize_inode,bigalloc", "-C", "4096", "-g", "8192"),
    "no_flex_bg": ("-b", "1024", "-O", "^flex_bg"),
    "32bit": ("-b", "1024", "-O", "^64bit"),
    "inline_data": ("-O", "inline_data", "-I", "512"),
    "inline_data_1k": ("-b", "1024", "-O", "inline_data", "-I", "1024"),
    "sparse_super2": ("-b", "1024", "-O", "sparse_super2"),
    "no_sparse_super": ("-b", "1024", "-O", "^sparse_super,^resize_inode"),
    "uninit_bg": ("-b", "1024", "-O", "^metadata_csum,uninit_bg"),
    "no_checksums": ("-b", "1024", "-O", "^metadata_csum,^uninit_bg"),
    "no_extents": ("-b", "1024", "-O", "^extents,^64bit"),
    "no_journal": ("-O", "^has_journal"),
    "quota": ("-O", "quota,project"),
    "mmp": ("-O", "mmp", "-E", "mmp_update_interval=1"),
    "encrypt_verity": ("-O", "encrypt,verity"),
    "casefold": ("-O", "casefold"),
    "large_dir_ea_inode": ("-b", "1024", "-O", "large_dir,ea_inode"),
    "orphan_file": ("-O", "orphan_file"),
    "fast_commit": ("-O", "fast_commit"),
    "checksum_seed": ("-O", "metadata_csum_seed"),
}

SIZES = {"blocks_64k": 256}
"""Image sizes [MiB], where 64 are too few."""


def run(*command: object, stdin: str | None = None, may_fail: bool = False) -> str:
    """Run a program; returns what it wrote."""
    done = subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        env={**os.environ, "PATH": PATH, "LC_ALL": "C"},
        check=False,
    )
    assert may_fail or done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
    return done.stdout + done.stderr


def needs(*programs: str) -> None:
    """Skip where a program is missing."""
    for program in programs:
        if shutil.which(program, path=PATH) is None:
            pytest.skip(f"{program} is missing: tools/setup dev")


def options(variant: str) -> tuple[str, ...]:
    """Options of mke2fs for a variant."""
    chosen = VARIANTS[variant]
    return chosen if "-t" in chosen else ("-t", "ext4", *chosen)


def fill_folder(folder: Path) -> None:
    """Files of every kind that needs no root."""
    (folder / "deep/er/and/deeper").mkdir(parents=True)
    (folder / "deep/er/and/deeper/file").write_bytes(b"x" * 5000)
    (folder / "short").write_bytes(b"short")
    (folder / "empty").touch()
    (folder / "middle").write_bytes(b"m" * 150)
    (folder / "big").write_bytes(os.urandom(3_000_000))
    os.link(folder / "short", folder / "deep/second name")
    (folder / "link").symlink_to("short")
    (folder / "long link").symlink_to("/" + "l" * 200)
    (folder / os.fsdecode(b"bytes \xff\xfe")).write_bytes(b"b")
    os.mkfifo(folder / "pipe")
    with open(folder / "sparse", "wb") as sparse:
        for place in range(0, 2_000_000, 100_000):
            sparse.seek(place)
            sparse.write(b"s" * 9000)
    many = folder / "many"
    many.mkdir()
    for number in range(400):
        (many / f"a rather long name, so that the directory has many blocks: {number:04}").write_bytes(b"")


def make(image: Path, variant: str, scratch: Path) -> None:
    """An image with fragmented files."""
    needs("mke2fs", "debugfs")
    folder = scratch / f"content-{variant}"
    folder.mkdir()
    fill_folder(folder)
    size = SIZES.get(variant, 64)
    # 1 KiB blocks have room for few inodes by default.
    run("mke2fs", "-q", "-F", "-N", "2048", "-d", folder, *options(variant), image, f"{size}M")
    pieces = [scratch / f"piece-{variant}", scratch / f"large-{variant}"]
    block = 65536 if "64k" in variant else 4096
    pieces[0].write_bytes(b"p" * 4 * block)
    pieces[1].write_bytes(os.urandom(300 * block))
    # Fill a part, take every other piece away, and put large files into the gaps.
    count = 300
    script = [f"write {pieces[0]} piece{number}" for number in range(count)]
    script += [f"rm piece{number}" for number in range(0, count, 2)]
    script += [f"write {pieces[1]} large{number}" for number in range(2)]
    script += ["rm piece1", "symlink fast /short"]
    run("debugfs", "-w", "-f", "-", image, stdin="\n".join(script))
    shutil.rmtree(folder)


@dataclass
class Stat:
    """Blocks of an inode."""

    data: dict[int, int] = field(default_factory=dict)
    """Of the file, by place in it."""
    unwritten: set[int] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    """That lead to others."""
    is_inline: bool = False
    attributes: int = field(default=0, compare=False)


SPAN = re.compile(r"\((\w+)(?:-(\d+))?(\[u\])?\):(\d+)(?:-(\d+))?")


def stats(image: Path, inodes: list[int]) -> dict[int, Stat]:
    """What debugfs says of inodes."""
    text = run("debugfs", "-f", "-", image, stdin="".join(f"stat <{inode}>\n" for inode in inodes))
    found: dict[int, Stat] = {}
    for part in re.split(r"^Inode: ", text, flags=re.M)[1:]:
        found[int(part.split()[0])] = _stat(part)
    return found


def _stat(text: str) -> Stat:
    stat = Stat()
    if match := re.search(r"Flags: 0x([0-9a-f]+)", text):
        stat.is_inline = bool(int(match[1], 16) & 0x1000_0000)
    if match := re.search(r"File ACL: (\d+)", text):
        stat.attributes = int(match[1])
    blocks = re.split(r"^(?:EXTENTS|BLOCKS):\n", text, flags=re.M)
    for name, last, unwritten, first, _ in SPAN.findall(blocks[1] if len(blocks) > 1 else ""):
        if not name.isdigit():
            stat.nodes.add(int(first))
            continue
        for logical in range(int(name), int(last or name) + 1):
            stat.data[logical] = int(first) + logical - int(name)
            if unwritten:
                stat.unwritten.add(logical)
    return stat


def free_extents(image: Path) -> tuple[int, int]:
    """Pieces of free space and their blocks, by e2freefrag (which finds none with bigalloc: 1.47.0)."""
    needs("e2freefrag")
    text = run("e2freefrag", image)
    rows = re.findall(r":\s+(\d+)\s+(\d+)\s+[\d.]+%", text)
    return sum(int(count) for count, _ in rows), sum(int(blocks) for _, blocks in rows)


def free_blocks(image: Path) -> list[tuple[int, int]]:
    """Free space by dumpe2fs: first and last block of each piece, across groups."""
    text = run("dumpe2fs", image)
    sizes = {name: int(size) for name, size in re.findall(r"^(Block|Cluster) size: +(\d+)", text, flags=re.M)}
    # For each piece it prints the first block of the first and of the last cluster.
    cluster = sizes.get("Cluster", sizes["Block"]) // sizes["Block"]
    pieces: list[tuple[int, int]] = []
    for line in re.findall(r"^  Free blocks: (\d.*)$", text, flags=re.M):
        for piece in line.split(", "):
            first, _, last = piece.partition("-")
            begin, end = int(first), int(last or first) + cluster - 1
            if pieces and pieces[-1][1] + 1 == begin:
                begin = pieces.pop()[0]
            pieces.append((begin, end))
    return pieces


def names(image: Path, inodes: list[int]) -> dict[int, set[str]]:
    """All paths of inodes, by debugfs."""
    text = run("debugfs", "-R", "ncheck " + " ".join(map(str, inodes)), image)
    found: dict[int, set[str]] = {}
    for line in text.splitlines():
        number, tab, path = line.partition("\t")
        if tab and number.isdigit():
            found.setdefault(int(number), set()).add(path.replace("//", "/", 1))
    return found
