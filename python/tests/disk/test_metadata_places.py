"""The rule on metadata away from data, compared with the blocks that debugfs names."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import ext_images
from ext_images import run
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

BLOCK = 1024
NEAR = 128 * 1024
MIB = 1 << 20


def made(image: Path, scratch: Path, inode_bytes: int) -> None:
    """Small files with attributes that fit into an inode of 256 bytes and not into one of 128, far from their data."""
    run("mke2fs", "-q", "-F", "-t", "ext2", "-b", BLOCK, "-I", inode_bytes, "-N", "4096", image, "64M")
    small, filler = scratch / "small", scratch / "filler"
    small.write_bytes(b"s" * 3000)
    filler.write_bytes(os.urandom(4 * MIB))
    script = [f"write {small} small{number}" for number in range(300)]
    script += [f"write {filler} filler"]
    script += [f'ea_set small{number} user.tag "{number:060}"' for number in range(300)]
    run("debugfs", "-w", "-f", "-", image, stdin="\n".join(script))


def counted(image: Path) -> tuple[int, int]:
    """Blocks of attributes and pointers away from the data of their files, and requests for data: block by block."""
    named = list(ext_images.names(image, list(range(12, 4097))))
    far = requests = 0
    for stat in ext_images.stats(image, named).values():
        if not stat.data:
            continue
        own = [*stat.nodes, *([stat.attributes] if stat.attributes else [])]
        for place in own:
            gaps = [max(place - data - 1, data - place - 1) for data in stat.data.values()]
            far += min(gaps) * BLOCK > NEAR
        places = [place for _, place in sorted(stat.data.items())]
        pieces = 1 + sum(here != before + 1 for before, here in itertools.pairwise(places))
        requests += pieces + len(places) * BLOCK // MIB
    return far, requests


def test_blocks_away_from_their_data_are_counted(scan: Callable, tmp_path: Path, library: Library) -> None:
    for inode_bytes, status in ((128, "finding"), (256, "ok")):
        image = tmp_path / f"image{inode_bytes}"
        made(image, tmp_path, inode_bytes)
        far, requests = counted(image)
        with Session(Recording.open(scan(image).folder), library) as session:
            [finding] = [each for each in session.diagnose() if each.rule == "disk/metadata_far_from_data"]
        assert (finding.status, finding.value) == (status, round(far / requests, 4))
        if status == "finding":
            assert far >= 290
            assert finding.subject == "attributes"
            assert finding.cost_ns == far * 20_000
