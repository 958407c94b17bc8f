"""btrfs with several subvolumes: each file of each of them is a row of its own, under its own path."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from ext_images import run
from loops import MIB, fill_with_all_kinds, made


def test_each_file_of_each_subvolume_has_its_own_path(tmp_path: Path, scan: Callable) -> None:
    with made(tmp_path / "image", ["mkfs.btrfs", "-q"], 512 * MIB) as root:
        fill_with_all_kinds(root)
        run("btrfs", "subvolume", "create", root / "other")
        (root / "other" / "file").write_bytes(os.urandom(5000))
        run("btrfs", "subvolume", "snapshot", root, root / "snapshot")
        os.sync()
        found = scan(root, "--no-measure")
        paths = [path for (path,) in found.query("SELECT path FROM inodes")]
        inodes = {(path.lstat().st_dev, path.lstat().st_ino) for path in (root, *root.rglob("*"))}
        # A snapshot has an empty folder in the place of another subvolume, which has no inode of its own.
        placeholders = sum(path.name == "other" and path.stat().st_ino == 2 for path in root.rglob("other"))
        assert len(paths) == len(set(paths)) == len(inodes) - placeholders
        assert {f"{root}/other/file", f"{root}/snapshot/folder/small1", f"{root}/folder/small1"} <= set(paths)
