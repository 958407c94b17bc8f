"""Colours and fonts of charts. The palette is that of Okabe and Ito, safe for colour-blind readers."""

from __future__ import annotations

from typing import Any

# Blue comes first and vermilion second, so that `ok` and `errors` look like what they are.
_LIGHT = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#8A8A00", "#6B6B6B"]
_DARK = ["#56B4E9", "#E8782A", "#1FBF92", "#E69F00", "#4C93D6", "#D98FBA", "#F0E442", "#A8A8A8"]

# IPAexGothic has Japanese characters; without a font that does, PNG files would show boxes.
FONT = "IPAexGothic, DejaVu Sans, sans-serif"


def config(theme: str = "light", font: str = FONT) -> dict[str, Any]:
    """The Vega-Lite `config` of a theme, `light` or `dark`."""
    dark = theme == "dark"
    text, muted, grid, back = (
        ("#E6E8EB", "#A9B0B8", "#30363D", "#161A20") if dark else ("#1B2127", "#55606B", "#E3E7EB", "#FFFFFF")
    )
    palette = _DARK if dark else _LIGHT
    return {
        "font": font,
        "background": back,
        "view": {"stroke": None},
        "range": {"category": palette},
        "mark": {"color": palette[0]},
        "rule": {"color": palette[0]},
        "tick": {"color": text},
        "text": {"color": text},
        "axis": {
            "labelColor": muted,
            "titleColor": text,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "gridColor": grid,
            "domainColor": muted,
            "tickColor": muted,
            "labelFontSize": 11,
            "labelOverlap": True,
            "tickCount": 8,
            "titleFontSize": 12,
        },
        "legend": {"labelColor": text, "titleColor": muted, "titleFontWeight": "normal", "symbolOpacity": 1},
        "title": {
            "anchor": "start",
            "color": text,
            "subtitleColor": muted,
            "fontSize": 14,
            "subtitleFontSize": 11,
            "offset": 10,
        },
    }
