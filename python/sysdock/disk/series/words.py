"""What the film strip and the graph of a series say, in English and Japanese."""

from __future__ import annotations

from sysdock.disk.map.words import title
from sysdock.disk.series.strip import Frame, Strip
from sysdock.text import human_bytes


def heading(strip: Strip, lang: str) -> str:
    """Which file system, and how often it was scanned."""
    scans = len(strip.frames) + strip.left_out
    count = f"{scans:,} 回の走査" if lang == "ja" else f"{scans:,} scans"
    return f"{title(strip.frames[-1].shown)}, {count}"


def scale(strip: Strip, lang: str) -> str:
    """What a cell of each frame is."""
    cell = human_bytes(strip.cell_bytes)
    return f"どのコマも 1 マス {cell}、並べ方は同じ" if lang == "ja" else f"in each frame a cell is {cell}"


def left_out(strip: Strip, lang: str) -> str | None:
    """How many scans have no frame."""
    if not strip.left_out:
        return None
    shown, scans = len(strip.frames), len(strip.frames) + strip.left_out
    if lang == "ja":
        return f"{scans:,} 回のうち {shown} 回を等間隔に示します。グラフはすべてを含みます。"
    return f"{shown} of {scans:,} scans are shown, evenly taken; the graph has all."


def date(frame: Frame) -> str:
    """When the scan of a frame was made."""
    return frame.snapshot.time.strftime("%Y-%m-%d %H:%M")


def caption(frame: Frame, lang: str) -> str:
    """The numbers below a frame."""
    facts = frame.snapshot.facts
    score = "-" if facts["layout_score"] is None else f"{facts['layout_score']:.4g}"
    if lang == "ja":
        return f"スコア {score}、断片 {facts['fragments']:,}"
    return f"score {score}, {facts['fragments']:,} fragments"
