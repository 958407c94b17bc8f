"""What `every_file_call` says it did, and what a recording says: both as calls of the same form, by thread."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import unquote_to_bytes

from sysdock.library import Library
from sysdock.recording import Recording, connect

# The words of the table are those of `calls`.
COLUMNS = (
    "call",
    "path",
    "fd",
    "offset_bytes",
    "requested_bytes",
    "result",
    "transferred_bytes",
    "errno",
    "to_path",
    "to_offset_bytes",
)
# Classes of calls that move bytes: their result is transferred_bytes.
MOVING = {
    *("read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg"),
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg", "vmsplice"),
    *("sendfile", "copy_file_range", "splice", "tee"),
}
# The program calls it where noting begins and ends.
MARK = "getpriority"


@dataclass(frozen=True)
class Call:
    """One call, as it was noted or as it was recorded."""

    call: str
    path: str | None
    fd: int | None
    offset_bytes: int | None
    requested_bytes: int | None
    result: int | None
    transferred_bytes: int | None
    errno: str | None
    to_path: str | None
    to_offset_bytes: int | None

    def differing(self, other: Call) -> list[str]:
        """Names of the columns in which two calls differ."""
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name)]


def readable(name: bytes) -> str:
    """A path as `paths` has it: UTF-8, with other bytes as \\xNN."""
    return "".join(
        f"\\x{ord(letter) - 0xDC00:02x}" if 0xDC80 <= ord(letter) <= 0xDCFF else letter
        for letter in name.decode("utf-8", "surrogateescape")
    )


def noted(notes: Path) -> dict[int, list[Call]]:
    """What the program says, by thread."""
    found = defaultdict(list)
    for line in notes.read_text("ascii").splitlines():
        tid, call, path, fd, offset, asked, result, errno, to_path, to_offset = line.split("\t")
        number = {"-": None}
        moved = int(result) if call in MOVING and result != "-" else None
        found[int(tid)].append(
            Call(
                call=call,
                path=None if path == "-" else readable(unquote_to_bytes(path)),
                fd=number.get(fd, fd) and int(fd),
                offset_bytes=None if offset == "-" else int(offset),
                requested_bytes=None if asked == "-" else int(asked),
                result=None if result == "-" else int(result),
                transferred_bytes=moved,
                errno=None if errno == "-" else errno,
                to_path=None if to_path == "-" else readable(unquote_to_bytes(to_path)),
                to_offset_bytes=None if to_offset == "-" else int(to_offset),
            )
        )
    return dict(found)


def recorded(recording: Path) -> dict[int, list[Call]]:
    """What was recorded where the program took notes, by thread."""
    connection = connect(Recording.open(recording), Library(), ["calls"])
    found = connection.execute(f"SELECT tid, ts_ns, {', '.join(COLUMNS)} FROM calls").fetchall()
    # The calls of a thread do not overlap, and those of the same microsecond stand in their order.
    found.sort(key=lambda row: row[1])
    calls, taking = defaultdict(list), defaultdict(bool)
    for tid, _, *values in found:
        call = Call(*values)
        if call.call == MARK:
            taking[tid] = not taking[tid]
        elif taking[tid] or call.call == "execve":
            calls[tid].append(call)
    return dict(calls)
