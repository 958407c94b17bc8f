"""Mutated logs, images of file systems and know-how, for verbs: changes of good ones by a number.

`make(number, ...)` writes one of them, and says which verbs are to meet it. What is read by a single reader of Python
is attacked by hostile_files.py, recordings by recording/hostile_recordings.py.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hostile_files import ROOT, change

_LOGS = sorted(
    path for kind in ("strace", "truss") for path in (ROOT / "testdata" / kind).rglob("*") if path.is_file()
)
_KNOWHOW = sorted(
    path for path in (ROOT / "knowhow").rglob("*") if path.suffix in (".sql", ".md", ".toml", ".json")
)
_LONGEST_LOG = 1 << 20
# Options of mke2fs: file systems with and without checksums, journal and extents.
_FORMATS = (
    ["-t", "ext4"],
    ["-t", "ext3"],
    ["-t", "ext2"],
    ["-t", "ext4", "-O", "^metadata_csum,bigalloc", "-C", "4096"],
)
_IMAGE_BYTES = 4 << 20


@dataclass(frozen=True)
class Good:
    """What is changed."""

    images: list[bytes]
    recording: Path


@dataclass(frozen=True)
class Hostile:
    """What was made, and the verbs that meet it."""

    what: str
    verbs: list[list[str]]
    environment: dict[str, str] = field(default_factory=dict)


def good_images(folder: Path) -> list[bytes]:
    """Small file systems with files, folders and links."""
    files = folder / "files"
    (files / "folder").mkdir(parents=True)
    (files / "numbers").write_bytes(bytes(range(256)) * 200)
    os.link(files / "numbers", files / "folder" / "again")
    (files / "link").symlink_to("numbers")
    for number in range(60):
        (files / f"a name of some length {number}").write_text("x" * number * 100)
    images = []
    for options in _FORMATS:
        image = folder / "image"
        command = ["mke2fs", "-q", "-F", "-b", "1024", *options, "-d", files, image, f"{_IMAGE_BYTES >> 10}k"]
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PATH": path})
        images.append(image.read_bytes())
        image.unlink()
    return images


def make(number: int, good: Good, folder: Path) -> Hostile:
    """Write input `number` into an existing folder; the same for the same number."""
    kinds: tuple[Callable[[random.Random, Good, Path], Hostile], ...] = (_log, _image, _knowhow)
    return kinds[number % len(kinds)](random.Random(number), good, folder)


def _log(chance: random.Random, _good: Good, folder: Path) -> Hostile:
    source = chance.choice(_LOGS)
    data = change(chance, source.read_bytes()[:_LONGEST_LOG], is_binary=source.suffix in (".gz", ".zst"))
    log = folder / source.name
    log.write_bytes(data)
    rec = str(folder / "rec")
    second = chance.choice([["report", rec, "-o", "-", "--format", "md"], ["diagnose", rec], ["info", rec]])
    return Hostile(f"log {source.relative_to(ROOT)}", [["import", str(log), "-o", rec], second])


def _image(chance: random.Random, good: Good, folder: Path) -> Hostile:
    which = chance.randrange(len(good.images))
    image = bytearray(good.images[which])
    for _ in range(chance.choice((1, 3, 10, 100))):
        # Most of what says how the rest is read lies at the front.
        end = chance.choice((4096, 65536, len(image)))
        at = chance.randrange(min(1024, end - 1), end)
        piece = chance.choice((bytes([chance.randrange(256)]), b"\xff" * 4, b"\0" * 4, chance.randbytes(8)))
        image[at : at + len(piece)] = piece
    if chance.random() < 0.1:
        del image[chance.randrange(len(image)) :]
    path, rec = folder / "image", str(folder / "rec")
    path.write_bytes(image)
    second = chance.choice([["disk", "map", rec], ["diagnose", rec], ["show", rec, "disk/files"]])
    return Hostile(f"image {which}", [["disk", "scan", str(path), "-o", rec], second])


def _knowhow(chance: random.Random, good: Good, folder: Path) -> Hostile:
    """The whole library, one file of which is another."""
    pack = folder / "knowhow"
    shutil.copytree(ROOT / "knowhow", pack, copy_function=os.link)
    source = chance.choice(_KNOWHOW)
    file = pack / source.relative_to(ROOT / "knowhow")
    file.unlink()
    file.write_bytes(change(chance, source.read_bytes()))
    rec = str(good.recording)
    verbs = [
        chance.choice([["diagnose", rec], ["report", rec, "-o", "-"], ["list"], ["show", rec, "io/files"]]),
        ["check", "--quiet", str(file)],
    ]
    return Hostile(f"know-how {source.relative_to(ROOT)}", verbs, {"SYSDOCK_KNOWHOW": str(pack)})
