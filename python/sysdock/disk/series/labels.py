"""Texts of the film strip and the graph of a series."""

from __future__ import annotations

from sysdock.disk.map.labels import title
from sysdock.disk.series.strip import Frame, Strip
from sysdock.sentences import Words, fact


def heading(strip: Strip) -> Words:
    """Which file system, and how often it was scanned."""
    scans = len(strip.frames) + strip.left_out
    return fact("disk_series/heading", title=title(strip.frames[-1].shown), scans=scans)


def scale(strip: Strip) -> Words:
    """The size of a cell of each frame."""
    return fact("disk_series/cell", cell=strip.cell_bytes)


def left_out(strip: Strip) -> Words | None:
    """The number of scans without a frame."""
    if not strip.left_out:
        return None
    return fact("disk_series/left_out", shown=len(strip.frames), scans=len(strip.frames) + strip.left_out)


def date(frame: Frame) -> str:
    """When the scan of a frame was made."""
    return frame.snapshot.time.strftime("%Y-%m-%d %H:%M")


def caption(frame: Frame) -> Words:
    """The numbers below a frame."""
    facts = frame.snapshot.facts
    score = "-" if facts["layout_score"] is None else f"{facts['layout_score']:.4g}"
    return fact("disk_series/caption", score=score, fragments=facts["fragments"])
