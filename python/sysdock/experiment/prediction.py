"""How many read requests a device gets for files that are read in order, from a scan of where they lie.

A request ends where a fragment ends, where what is read ahead at once ends, and where the device takes no
more in one. So pieces that fit into a request cost one each. Of larger ones a range is known: a request also
holds a limited number of pieces of memory, and only the kernel knows how its memory lies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording, connect

# btrfs reads at least this much ahead, regardless of its device (fs/btrfs/disk-io.c, open_ctree).
_BTRFS_READ_AHEAD = 4 << 20
# On the disk, an item of a leaf has a head of 25 bytes; an extent of a file takes 53, a checksum of crc32c 4;
# the head of a node takes 101 (fs/btrfs: struct btrfs_item, btrfs_file_extent_item, btrfs_header).
_ITEM, _EXTENT_ITEM, _CHECKSUM, _NODE_HEAD = 25, 53, 4, 101

Extent = tuple[int, int, int, int]


@dataclass(frozen=True)
class Queue:
    """Read-ahead size, and greatest size of a request: at best, and with memory in single pages."""

    read_ahead_bytes: int
    request_bytes: int
    scattered_bytes: int


@dataclass(frozen=True)
class Prediction:
    """Fragments of some files, and the fewest and most requests for their content and what leads to it."""

    fragments: int
    requests: int
    most_requests: int


def predict(scan: Recording, library: Library, folder: Path, queue: Queue) -> Prediction:
    """The cost of reading every file of `folder` sequentially, without subfolders.

    Raises UserError if the scan knows no file there: a sum over nothing would be a prediction of 0.
    """
    connection = connect(scan, library, ["file_systems", "inodes", "extents", "layout"])
    try:
        # Paths of a scan begin at the mount point as the kernel names it.
        chosen = {"prefix": f"{folder.resolve()}/"}
        of_files = (
            "SELECT inode FROM inodes WHERE kind = 'file' AND starts_with(path, $prefix) "
            "AND NOT contains(substr(path, length($prefix) + 1), '/')"
        )
        [(kind, uuid, block)] = connection.execute(
            "SELECT fs_type, uuid, block_bytes FROM file_systems"
        ).fetchall()
        extents = connection.execute(
            "SELECT inode, logical_bytes, physical_bytes, length_bytes FROM extents "
            f"WHERE physical_bytes IS NOT NULL AND inode IN ({of_files}) ORDER BY inode, logical_bytes",
            chosen,
        ).fetchall()
        [(files, fragments)] = connection.execute(
            "SELECT count(*), coalesce(CAST(sum(fragments) AS BIGINT), 0) FROM inodes "
            f"WHERE inode IN ({of_files})",
            chosen,
        ).fetchall()
        if not files:
            raise UserError("the scan has no file there", "let an earlier step create files", str(folder))
        [(nodes,)] = connection.execute(
            f"SELECT coalesce(CAST(sum(length_bytes) AS BIGINT), 0) FROM layout WHERE inode IN ({of_files})",
            chosen,
        ).fetchall()
    finally:
        connection.close()
    if kind == "btrfs":
        queue = replace(queue, read_ahead_bytes=max(queue.read_ahead_bytes, _BTRFS_READ_AHEAD))
        leading = _btrfs_leaves(extents, uuid, block)
    else:
        leading = nodes // block
    most = min(queue.request_bytes, queue.scattered_bytes)
    return Prediction(
        fragments,
        content_requests(extents, queue.read_ahead_bytes, queue.request_bytes) + leading,
        content_requests(extents, queue.read_ahead_bytes, most) + leading,
    )


def content_requests(extents: Iterable[Extent], read_ahead: int, largest: int) -> int:
    """Requests for extents (file, place in it, place on the device, length), in the order of reading."""
    requests = 0
    for begin, end in _runs(extents):
        while begin < end:
            # Windows of read-ahead follow one another from the beginning of the file on.
            window = min(end, (begin // read_ahead + 1) * read_ahead)
            requests += -(-(window - begin) // largest)
            begin = window
    return requests


def _runs(extents: Iterable[Extent]) -> Iterable[tuple[int, int]]:
    """Beginnings and ends, in the file, of what lies in one piece on the device."""
    last: tuple[int, int] | None = None
    begin = end = 0
    for file, logical, physical, length in extents:
        if last != (file, physical - logical) or logical != end:
            if end > begin:
                yield begin, end
            begin = logical
        last, end = (file, physical - logical), logical + length
    if end > begin:
        yield begin, end


def _btrfs_leaves(extents: list[Extent], uuid: str, sector: int) -> int:
    """Leaves of full trees that hold the extents and the checksums of the files: one request each.

    A scan does not tell which leaf holds what.
    """
    room = int(Path("/sys/fs/btrfs", uuid, "nodesize").read_text()) - _NODE_HEAD
    checksums = sum(length for *_, length in extents) // sector * _CHECKSUM
    return -(-len(extents) * (_ITEM + _EXTENT_ITEM) // room) + -(-checksums // room)
