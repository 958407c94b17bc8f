"""Makes files in the holes of a file system that small files fill: as an old file system breaks a new file.

Which holes a file system takes is its own business. So that it can be predicted all the same, there are
only holes of one size: no two of them lie side by side, and no other large area is left.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from sysdock.disk.broken_files import Plan, classic, interleave, opened_files, write_in_turns
from sysdock.disk.fiemap import extents
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording, connect
from sysdock.recording.native import scan_quietly
from sysdock.scratch import scratch_folder

# Folder of the small files, below the folder of the files.
TEETH = "teeth"
# Part of the files that may be in areas outside the holes, so that the number of pieces is right to 1 %.
_LEFT_OVER = 0.005
_TURNS = 8


def comb(folder: Path, plan: Plan) -> int | None:
    """Fills the file system with small files, removes every other, and writes the files into the holes.

    Returns the number of fragments, None where large areas stayed free that could not be seen or taken.
    """
    teeth = folder / TEETH
    teeth.mkdir()
    with _without_reserve(folder):
        places = _fill(teeth, plan.piece)
        holes = _remove_every_other(teeth, places, plan.piece)
    if holes * plan.piece < plan.files * plan.size:
        raise UserError(
            f"the holes hold {holes * plan.piece:,} bytes, the files {plan.files * plan.size:,}",
            "take fewer or smaller files, or a larger file system with more inodes",
        )
    only_holes = _take_large_areas(teeth, plan)
    with opened_files(folder, plan.files) as files:
        write_in_turns(files, plan)
    return plan.files * plan.pieces if only_holes else None


MODES: dict[str, Callable[[Path, Plan], int | None]] = {
    "interleave": interleave,
    "comb": comb,
    "classic": classic,
}


def remove_teeth(folder: Path) -> None:
    """Removes the small files, so that there is room to defragment."""
    if (folder / TEETH).is_dir():
        shutil.rmtree(folder / TEETH)


@contextmanager
def _without_reserve(folder: Path) -> Iterator[None]:
    """ext4 keeps blocks for its own needs that no file gets, in one large area: none of them meanwhile."""
    device = os.stat(folder).st_dev
    name = Path(os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")).name
    knob = Path("/sys/fs/ext4") / name / "reserved_clusters"
    before = None
    with suppress(OSError):
        before = knob.read_text()
        knob.write_text("0")
    try:
        yield
    finally:
        if before is not None:
            with suppress(OSError):
                knob.write_text(before)


def _fill(teeth: Path, piece: int) -> list[tuple[int, int]]:
    """Small files until no more fit. Returns place and number of those that lie in one piece."""
    places = []
    number = 0
    try:
        while True:
            with open(teeth / str(number), "wb", buffering=0) as tooth:
                os.posix_fallocate(tooth.fileno(), 0, piece)
                place = _place(tooth.fileno())
            if place is not None:
                places.append((place, number))
            number += 1
    except OSError as error:
        (teeth / str(number)).unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
    return places


def _place(file: int) -> int | None:
    """The location of a file on the device; None if it is fragmented."""
    found = list(islice(extents(file, at_once=2), 2))
    return found[0][1] if len(found) == 1 else None


def _remove_every_other(teeth: Path, places: list[tuple[int, int]], piece: int) -> int:
    """Every other in the order of the device, as that of their making is another. Returns how many."""
    holes, end = 0, -1
    for place, number in sorted(places):
        if place > end:
            (teeth / str(number)).unlink()
            end = place + piece
            holes += 1
    os.sync()
    return holes


def _take_large_areas(teeth: Path, plan: Plan) -> bool:
    """Takes what is free outside the holes: files would go there first. Returns whether that came true.

    xfs keeps space for its own trees in large areas, which count as free as soon as there are holes.
    """
    left = -1
    for turn in range(_TURNS):
        areas = _large_areas(teeth, plan.piece)
        if areas is None or sum(areas) == left:
            return False
        left = sum(areas)
        if left <= plan.files * plan.size * _LEFT_OVER:
            return True
        for number, length in enumerate(areas):
            with suppress(OSError), open(teeth / f"area{turn}-{number}", "wb") as area:
                os.posix_fallocate(area.fileno(), 0, length)
        os.sync()
    return False


def _large_areas(folder: Path, piece: int) -> list[int] | None:
    """Lengths of the free areas that are clearly larger than a hole, the largest first; None: not known."""
    with scratch_folder() as scratch:
        scan = Path(scratch) / "scan"
        scan_quietly(_mount_point(folder), scan)
        recording = Recording.open(scan)
        if "free_extents" not in recording.tables:
            return None
        connection = connect(recording, Library(), ["file_systems", "free_extents"])
        try:
            [(kind,)] = connection.execute("SELECT fs_type FROM file_systems").fetchall()
            if kind == "btrfs":
                # Its chunks separate data from metadata: files cannot use the space of metadata.
                return []
            sql = "SELECT length_bytes FROM free_extents WHERE length_bytes >= $least ORDER BY 1 DESC"
            return [length for (length,) in connection.execute(sql, {"least": piece * 5 // 4}).fetchall()]
        finally:
            connection.close()


def _mount_point(folder: Path) -> Path:
    """The mount point that a folder lies below."""
    place = folder.resolve()
    while not place.is_mount():
        place = place.parent
    return place
