"""`disk scan --no-names` finds all that a scan finds, but for the names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mounted import MIB, fill, mounted

KINDS = {
    "ext4": (["mkfs.ext4", "-q"], 256 * MIB),
    "xfs with owners": (["mkfs.xfs", "-q", "-m", "rmapbt=1"], 512 * MIB),
    "btrfs": (["mkfs.btrfs", "-q"], 512 * MIB),
}
BUT_NAMES = {
    "inodes": "SELECT * EXCLUDE (path_id)",
    "extents": "SELECT *",
    "free_extents": "SELECT *",
    "layout": "SELECT *",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["", "broken"])
def test_all_but_the_names_is_the_same(tmp_path: Path, scan: Callable, kind: str, part: str) -> None:
    make, size = KINDS[kind]
    with mounted(tmp_path / "image", make, size) as root:
        fill(root)
        with_names, without = scan(root / part), scan(root / part, "--no-names")
    assert with_names.one("SELECT count(path_id) FROM inodes") > 5
    assert without.one("SELECT count(path_id) FROM inodes") == 0
    for table, select in BUT_NAMES.items():
        if (with_names.folder / table).exists():
            one, other = (
                found.rows(f"{select} FROM {table} ORDER BY ALL") for found in (with_names, without)
            )
            assert one == other, table
    # What names alone can show is not asked for.
    assert not without.issues()
