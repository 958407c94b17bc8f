"""Puts a page together that needs nothing but itself and may call nowhere.

The content-security policy allows the scripts and the style of the page by their hashes and nothing else.
Vega is carried packed, because it is larger than all the rest; the page unpacks it and runs it as an inline
script, whose hash is in the policy as well. Data is in JSON blocks.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import sysdock
from sysdock import to_disk
from sysdock.page.markup import attribute, opened_in, text
from sysdock.page.theme import config
from sysdock.sentences import Words, catalogue, fact, in_all, languages
from sysdock.text import harmless_json

# Fonts of the reader's machine; the ones of a picture file need not be there.
_FONT = "system-ui, 'Noto Sans CJK JP', 'Hiragino Sans', 'Yu Gothic', sans-serif"
ASSET = Path(__file__).parent / "assets" / "vega.js"


def document(
    title: str,
    lang: str,
    body: str,
    charts: list[dict[str, Any]],
    *,
    style: Sequence[str] = ("report.css",),
    script: str = "report.js",
    data: Sequence[str] = (),
) -> str:
    """A complete page; chart N of `charts` (Vega-Lite) is drawn into the element with data-chart=N.

    `style` and `script` are files of `web`; `data` are blocks as `json_block` makes them.
    """
    styles, code = "".join(_web(name) for name in style) + _one_language_at_a_time(), _web(script)
    hashes, blocks = [_sha256(code)], [json_block("sysdock-words", _words_of(script)), *data]
    if charts:
        vega = vega_code()
        hashes.append(_sha256(vega))
        themes = {theme: config(theme, _FONT) for theme in ("light", "dark")}
        blocks.append(
            json_block("sysdock-charts", {"charts": [_packed(chart) for chart in charts], "themes": themes})
        )
        blocks.append(f'<script type="text/plain" id="sysdock-vega">{_gzip_base64(vega)}</script>')
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_sha256(styles)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="sysdock {text(sysdock.__version__)}">
<title>{text(title)}</title>
<style>{styles}</style>
</head>
<body>
{opened_in(lang, body)}
{"".join(f"{block}{chr(10)}" for block in blocks)}<script>{code}</script>
</body>
</html>
"""


def _words_of(script: str) -> dict[str, dict[str, str]]:
    """Texts of the page's code, by name and language: the subject of its file."""
    subject = f"script_{script.removesuffix('.js')}"
    return {name: in_all(fact(f"{subject}/{name}")) for name in catalogue().subject(subject)}


def _one_language_at_a_time() -> str:
    """The style by which the language switch works without a script."""
    return "".join(
        f':root:has(#lang-{lang}:checked) .t:not([lang="{lang}"]) {{ display: none; }}\n'
        for lang in languages()
    )


def language_names() -> list[tuple[str, str]]:
    """Languages that a page can be switched to: code and name."""
    return [(lang, entry["name"]) for lang, entry in catalogue().languages.items()]


def page_head(lang: str) -> str:
    """The head of a page of its own, with a switch of languages."""
    radios = "".join(
        f'<input type="radio" name="lang" id="lang-{value}" value="{value}"{" checked" * (value == lang)}>'
        f'<label for="lang-{value}">{words}</label>'
        for value, words in language_names()
    )
    label = attribute("aria-label", fact("page/language"))
    switch = f'<div class="switch" role="radiogroup"{label}>{radios}</div>'
    return f'<header class="top"><span class="mark">sysdock</span>{switch}</header>'


def chart_page(specs: list[dict[str, Any]], title: str, lang: str) -> str:
    """A page of charts and nothing else."""
    figures = []
    for number, spec in enumerate(specs):
        head, caption = spec["title"]["text"], spec["title"]["subtitle"]
        label = f"{head}, {caption}"
        figures.append(figure(number, text(head), text(caption), label))
    body = f'<main class="plain"><h1>{text(title)}</h1>{"".join(figures)}</main>'
    return document(title, lang, body, specs)


def figure(number: int, title: str, caption: str, label: Words) -> str:
    """The place of chart `number`: title and caption are HTML, `label` is plain text for screen readers."""
    return (
        f'<figure class="chart"><figcaption><strong>{title}</strong> '
        f'<span class="muted">{caption}</span></figcaption>'
        f'<div class="plot" data-chart="{number}" role="img"{attribute("aria-label", label)}></div></figure>'
    )


def vega_code() -> str:
    """The Vega libraries as one script: the file made by tools/gen, else made now (1.2 s)."""
    try:
        return ASSET.read_text("utf-8")
    except OSError:
        return make_vega_asset()


@cache
def make_vega_asset() -> str:
    """Makes the script from the converter package, and keeps it next to this module where that can be."""
    import vl_convert

    # Its type stub requires the snippet, which may be left out.
    bundle = cast(Callable[[], str], vl_convert.javascript_bundle)
    code = bundle().replace("\r\n", "\n")
    temporary = ASSET.with_name(f".vega.{os.getpid()}")
    try:
        ASSET.parent.mkdir(exist_ok=True)
        temporary.write_text(code, "utf-8", newline="\n")
        to_disk.replace(temporary, ASSET)
    except OSError:
        # An installed package may be read-only; the code is then made once per run.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return code


def _packed(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with its rows as columns, texts as numbers into a list: a third of the size."""
    rows = spec["data"]["values"]
    columns: dict[str, Any] = {}
    for key in rows[0] if rows else ():
        values = [row[key] for row in rows]
        if values and isinstance(values[0], str):
            names = list(dict.fromkeys(values))
            places = {name: place for place, name in enumerate(names)}
            columns[key] = {"names": names, "at": [places[value] for value in values]}
        else:
            columns[key] = values
    return {
        "spec": {key: value for key, value in spec.items() if key not in ("data", "title")},
        "columns": columns,
    }


def json_block(name: str, data: Any) -> str:
    """Data for the page's script, in an element with the id `name`."""
    # An unescaped `<` could end the block, whatever its type.
    plain = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packed = harmless_json(plain).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{packed}</script>'


def _gzip_base64(code: str) -> str:
    return base64.b64encode(gzip.compress(code.encode(), 9, mtime=0)).decode()


def _sha256(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


@cache
def _web(name: str) -> str:
    """Our own page code, from inside the package, else from the checkout."""
    package = Path(sysdock.__file__).resolve().parent
    inside = package / "web" / name
    return (inside if inside.is_file() else package.parent.parent / "web" / name).read_text("utf-8")
