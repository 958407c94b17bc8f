"""A map as a picture: the cells, the names of groups, a title and a legend with the share of each class."""

from __future__ import annotations

import base64
from typing import Any

from sysdock.disk.map.drawing import Drawn
from sysdock.disk.map.labels import CLASSES, percent_of, remarks, scale, title
from sysdock.page.markup import text
from sysdock.page.theme import FONT
from sysdock.sentences import Words, fact, say
from sysdock.text import human_bytes

_MARGIN = 16
_HEAD = 60
_LEGEND = 430
_LIT = "#C2007B"
_SMALL = 11


def picture(drawn: Drawn, lang: str, find: str | None = None) -> bytes:
    """The map with its words, as PNG."""
    import vl_convert

    return vl_convert.svg_to_png(svg(drawn, lang, find), scale=1.0)


def svg(drawn: Drawn, lang: str, find: str | None = None) -> str:
    """The picture as SVG, with the cells as an image."""
    shown = drawn.shown
    side = int.from_bytes(drawn.png[16:20], "big")
    width, height = side + _LEGEND + 2 * _MARGIN, side + _HEAD + _MARGIN
    data = base64.b64encode(drawn.png).decode()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="{FONT}">',
        '<rect width="100%" height="100%" fill="#FFFFFF"/>',
        patterns(shown["shares"]),
        f'<text x="{_MARGIN}" y="26" font-size="18" font-weight="bold">{text(title(shown))}</text>',
        f'<text x="{_MARGIN}" y="47" font-size="13" fill="#444444">{text(say(scale(shown), lang))}</text>',
        f'<image x="{_MARGIN}" y="{_HEAD}" width="{side}" height="{side}" image-rendering="optimizeSpeed" '
        f'href="data:image/png;base64,{data}"/>',
        *_labels(shown, side),
        *_legend(shown, side + 2 * _MARGIN, lang, find),
        "</svg>",
    ]
    return "\n".join(parts)


def _labels(shown: dict[str, Any], side: int) -> list[str]:
    """Names of groups, as many as have room."""
    taken: list[tuple[float, float, float, float]] = []
    parts = []
    for label in shown["labels"]:
        # With several devices, the number of the device comes first.
        words = f"{label['device']}: " if len(shown["devices"]) > 1 else ""
        words += str(label["first"])
        words += "" if label["first"] == label["last"] else f"-{label['last']}"
        half = len(words) * _SMALL * 0.32 + 3
        x, y = _MARGIN + label["x"] * side, _HEAD + label["y"] * side
        box = (x - half, y - _SMALL, x + half, y + _SMALL / 2)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            continue
        taken.append(box)
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{_SMALL}" text-anchor="middle" stroke="#FFFFFF" '
            f'stroke-width="3" stroke-linejoin="round" paint-order="stroke">{words}</text>'
        )
    return parts


def patterns(shares: list[dict[str, Any]]) -> str:
    """Fills of the legend, with the patterns of the cells enlarged; `fill-CLASS` is the id of each."""
    shapes = {
        "plain": "",
        "checks": '<path d="M0 0h4v8h4v-4h-8z" fill="{0}"/>',
        "diagonals": '<path d="M0 8L8 0M-2 2L2 -2M6 10L10 6" stroke="{0}" stroke-width="2.4"/>',
        "lines": '<rect width="8" height="2" fill="{0}"/>',
    }
    parts = [
        f'<pattern id="fill-{each["class"]}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" fill="{each["colour"]}"/>'
        + shapes[each["pattern"]].format(each["second"])
        + "</pattern>"
        for each in shares
    ]
    return f"<defs>{''.join(parts)}</defs>"


def _numbers(shown: dict[str, Any]) -> Words:
    """The legend of the labels."""
    several = len(shown["devices"]) > 1
    return fact("disk_map/numbers_of_devices" if several else "disk_map/numbers_of_groups")


def _legend(shown: dict[str, Any], left: int, lang: str, find: str | None) -> list[str]:
    parts, top = [], _HEAD
    for each in shown["shares"]:
        name, meaning = (say(words, lang) for words in CLASSES[each["class"]])
        amount = f"{percent_of(each['bytes'], shown['length'])}, {human_bytes(each['bytes'])}"
        parts.append(entry(left, top, f"url(#fill-{each['class']})", f"{name}: {amount}", meaning))
        top += 42
    if find is not None:
        words = f"{find}: {human_bytes(shown['lit_bytes'])}"
        parts.append(entry(left, top, _LIT, words if len(words) < 60 else f"...{words[-57:]}", ""))
        top += 42
    groups = _numbers(shown)
    notes = [say(each, lang) for each in (*([groups] if shown["labels"] else []), *remarks(shown))]
    for line in notes:
        parts.append(f'<text x="{left}" y="{top + 14}" font-size="12" fill="#444444">{text(line)}</text>')
        top += 18
    return parts


def entry(left: int, top: int, fill: str, words: str, meaning: str) -> str:
    """A line of a legend: a field of colour, what it is called, what it means."""
    return (
        f'<rect x="{left}" y="{top}" width="26" height="26" fill="{fill}" stroke="#888888"/>'
        f'<text x="{left + 36}" y="{top + 13}" font-size="13">{text(words)}</text>'
        f'<text x="{left + 36}" y="{top + 29}" font-size="11.5" fill="#555555">{text(meaning)}</text>'
    )
