"""What a diagnosis makes of scans of disks: what is urgent, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner
from make_recording import RecordingMaker
from sysdock.cli import sysdock

PIECES = 100


def scanned(maker: RecordingMaker, free_bytes: int, unread_files: int = 0, pieces: int = PIECES) -> Path:
    """A scan with one file in many pieces."""
    system = {"fs_type": "ext4", "source": "/dev/sdb1", "block_bytes": 4096, "size_bytes": 1 << 30}
    system |= {"free_bytes": free_bytes, "method": "raw", "reason": "an image", "files": 10}
    system |= {"unread_files": unread_files, "whole": True, "moment": "one"}
    file = {"inode": 12, "path_id": 0, "kind": "file", "extents": pieces, "fragments": pieces, "links": 1}
    extents = [
        {
            "inode": 12,
            "logical_bytes": 4096 * at,
            "physical_bytes": 65536 * at,
            "length_bytes": 4096,
            "flags": "",
        }
        for at in range(pieces)
    ]
    tables = {
        "file_systems": [system],
        "inodes": [{**file, "size_bytes": 4096 * pieces, "allocated_bytes": 4096 * pieces}],
        "extents": [{**extent, "device": 0} for extent in extents],
        "paths": [{"path_id": 0, "path": "/file", "kind": "file"}],
        "environment": [],
    }
    return maker.write(tables, f"free{free_bytes}-{unread_files}", recorder="disk", about="scan")


def test_a_disk_that_is_nearly_full_comes_first(maker: RecordingMaker, open_session: Callable) -> None:
    findings = open_session(scanned(maker, free_bytes=1 << 20)).diagnose()
    found = [finding.rule for finding in findings if finding.status == "finding"]
    assert found == ["disk/nearly_full", "disk/fragmented_files"]


def test_files_that_were_not_read_may_be_in_pieces(maker: RecordingMaker, open_session: Callable) -> None:
    for unread, status in ((0, "ok"), (2, "unknown")):
        findings = open_session(scanned(maker, 1 << 29, unread, pieces=1)).diagnose()
        states = {finding.rule: finding.status for finding in findings}
        assert states["disk/fragmented_files"] == status
        assert states["disk/nearly_full"] == "ok"


def test_info_says_what_was_scanned_and_how_much_of_it(maker: RecordingMaker) -> None:
    said = (
        CliRunner().invoke(sysdock, ["info", str(scanned(maker, 1 << 29, 2))], catch_exceptions=False).output
    )
    assert "scanned      ext4 on /dev/sdb1 (not mounted), 1.00 GiB, all of it" in said
    assert "method       raw: an image" in said
    assert "files        8 of 10 read (80.0 %)" in said
    assert f"extents      {PIECES}" in said
    assert "understood (" not in said
