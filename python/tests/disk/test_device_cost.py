"""The cost of a request that a scan measures, on a device of known cost: the kernel throttles it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ext_images import run
from loops import loop, needs_root
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

BLKIO = Path("/sys/fs/cgroup/blkio")
UNIFIED = Path("/sys/fs/cgroup")
# Reads a second that are let through: few enough that a scan sees several of the kernel's slices of time.
ALLOWED = 100
FACTS = "SELECT name, value FROM environment WHERE section = 'device'"


@contextmanager
def held_back(device: Path) -> Iterator[Path]:
    """A control group, of version 1 or 2, whose reads of the device are held back."""
    number = Path(f"/sys/block/{device.name}/dev").read_text().strip()
    is_old = BLKIO.is_dir()
    group = (BLKIO if is_old else UNIFIED) / f"sysdock-test-{os.getpid()}"
    group.mkdir()
    try:
        if is_old:
            (group / "blkio.throttle.read_iops_device").write_text(f"{number} {ALLOWED}")
        else:
            (group / "io.max").write_text(f"{number} riops={ALLOWED}")
        yield group
    finally:
        group.rmdir()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file system of 128 MiB."""
    path = tmp_path / "image"
    run("mke2fs", "-q", "-F", "-t", "ext4", path, "128M")
    return path


def measured(folder: Path, library: Library) -> tuple[int, int, bool]:
    """What analyses and rules take: cost of a request [ns], bytes a second, whether these were measured."""
    with Session(Recording.open(folder), library) as session:
        [row] = session.fetch("SELECT request_ns, bytes_per_second, measured FROM device_cost")
    return row


def why_not(found: Any) -> dict[str, Any]:
    """The reason why the device of a scan was not measured."""
    [measurement] = json.loads(dict(found.rows(FACTS))["measurement"])
    assert measurement["code"] == "disk/not_measured"
    why: dict[str, Any] = measurement["why"]
    return why


def test_a_device_that_is_held_back_costs_what_it_is_held_back_for(
    image: Path, native: Path, tmp_path: Path, library: Library
) -> None:
    needs_root()
    with loop(image) as device, held_back(device) as group:
        enter = 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"'
        command = ["sh", "-c", enter, "sh", group, native, "disk", "scan", device, "-o", tmp_path / "rec"]
        subprocess.run(command, check=True, capture_output=True)
    request_ns, _, is_measured = measured(tmp_path / "rec", library)
    assert is_measured
    assert request_ns == pytest.approx(1e9 / ALLOWED, rel=0.3)


def test_a_free_device_is_measured_by_few_reads(image: Path, scan: Callable, library: Library) -> None:
    needs_root()
    with loop(image) as device:
        before = sectors_read(device)
        found = scan(device, "--no-measure")
        without = sectors_read(device) - before
        assert measured(found.folder, library) == (20_000, 1_000_000_000, False)
        assert why_not(found) == {"code": "disk/measuring_off"}
        found = scan(device)
        with_ = sectors_read(device) - before - without
    request_ns, speed, is_measured = measured(found.folder, library)
    assert is_measured
    assert request_ns > 0 < speed
    assert with_ * 512 <= 64 << 20
    facts = dict(found.rows(FACTS))
    assert facts["name"] == str(device)
    assert facts["one more request"] == f"{request_ns} ns"
    [measurement] = json.loads(facts["measurement"])
    assert measurement["code"] == "disk/measured_by_reads"
    assert (measurement["apart_bytes"], measurement["in_order_bytes"]) == (4096, 1 << 20)


def sectors_read(device: Path) -> int:
    """Number of sectors of 512 bytes read since the device appeared (Documentation/block/stat.rst)."""
    return int(Path(f"/sys/block/{device.name}/stat").read_text().split()[2])


def test_an_image_file_is_not_measured_and_that_is_said(
    image: Path, scan: Callable, library: Library
) -> None:
    found = scan(image)
    assert "was not measured" in found.messages
    assert why_not(found) == {"code": "disk/no_block_device", "path": str(image)}
    assert measured(found.folder, library)[2] is False


def test_analysis_and_rule_say_where_the_cost_is_from(image: Path, scan: Callable, library: Library) -> None:
    script = [f"write {image.parent / 'piece'} piece{number}" for number in range(600)]
    (image.parent / "piece").write_bytes(b"p" * 4096)
    (image.parent / "large").write_bytes(os.urandom(1 << 20))
    script += [f"rm piece{number}" for number in range(0, 600, 2)]
    script += [f"write {image.parent / 'large'} large"]
    run("debugfs", "-w", "-f", "-", image, stdin="\n".join(script))
    folder = scan(image).folder
    with Session(Recording.open(folder), library) as session:
        named = [column.name for column in library.analysis("disk/files").columns]
        for params, by in (({}, "assumed"), ({"request_ns": 8_000_000}, "given")):
            row = dict(zip(named, session.run("disk/files", params).rows(1)[0], strict=True))
            assert (row["path"], row["cost_is"]) == ("/large", by)
            assert row["cost_ns"] == row["extra_requests"] * row["request_ns"]
            assert row["request_ns"] == params.get("request_ns", 20_000)
        [finding] = [each for each in session.diagnose() if each.rule == "disk/fragmented_files"]
    assert "(not measured)" in finding.reason
    assert finding.certainty == "medium"
