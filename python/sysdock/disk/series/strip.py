"""The film strip: the map of each scan of a series, small, all to one scale and along one curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sysdock.disk.map import MapOptions, drawn
from sysdock.disk.series.scans import Snapshot

MOST_FRAMES = 60


@dataclass(frozen=True)
class StripOptions:
    """How frames are drawn: `side` in pixels; `worst` as for a single map."""

    curve: str = "hilbert"
    side: int = 256
    worst: bool = False


@dataclass(frozen=True)
class Frame:
    """The map of one scan (PNG, without words)."""

    snapshot: Snapshot
    png: bytes
    shown: dict[str, Any]


@dataclass(frozen=True)
class Strip:
    """Frames in order of time; `left_out` scans have none. `device_bytes`: size of what each frame shows."""

    frames: list[Frame]
    left_out: int
    device_bytes: int
    side: int

    @property
    def cell_bytes(self) -> float:
        """Number of bytes that a cell of a frame represents."""
        cells: int = 4 ** self.frames[0].shown["order"]
        return self.device_bytes / cells


def film_strip(found: Sequence[Snapshot], options: StripOptions) -> Strip:
    """Draws the frames of some scans, which are at least one."""
    size = max(each.facts["size_bytes"] for each in found)
    wanted = MapOptions(curve=options.curve, size=options.side, worst=options.worst, least_size=size)
    frames = [Frame(each, *_picture(each, wanted)) for each in _thinned(found)]
    return Strip(frames, len(found) - len(frames), frames[0].shown["size_bytes"], options.side)


def _picture(snapshot: Snapshot, options: MapOptions) -> tuple[bytes, dict[str, Any]]:
    whole = drawn(snapshot.folder, options)
    return whole.png, whole.shown


def _thinned(found: Sequence[Snapshot]) -> list[Snapshot]:
    """At most `MOST_FRAMES`, evenly, with the first and the last."""
    if len(found) <= MOST_FRAMES:
        return list(found)
    step = (len(found) - 1) / (MOST_FRAMES - 1)
    return [found[round(number * step)] for number in range(MOST_FRAMES)]
