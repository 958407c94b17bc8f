"""A map as one page: it draws the cells, zooms to single blocks, shows whose a cell is, and finds files.

The pieces are carried packed (see crates/disk/src/map/packed.rs), the files as JSON, both as base64 of
deflate.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

from sysdock.disk.map.drawing import MapOptions, drawn
from sysdock.disk.map.labels import CLASSES, percent_of, remarks, title
from sysdock.errors import UserError
from sysdock.page.document import document, json_block, page_head
from sysdock.page.markup import attribute, both, text
from sysdock.sentences import fact, in_all
from sysdock.text import human_bytes

MOST_PIECES = 2_000_000


def page(recording: Path, options: MapOptions, lang: str, most: int = MOST_PIECES) -> bytes:
    """The page of a recording of a disk."""
    if options.from_byte or options.length is not None:
        hint = "a page zooms interactively; --from and --length are for pictures"
        raise UserError("a page shows the whole device", hint, "--from, --length")
    whole = drawn(recording, options, pieces=True, most=most)
    shown = whole.shown
    files = _files(recording, shown["packed"].pop("inodes"))
    for share in shown["shares"]:
        share["name"] = in_all(CLASSES[share["class"]][0])
    facts = {**shown, "curve": options.curve, "is_search": options.find is not None}
    blocks = [
        json_block("sysdock-map", {key: value for key, value in facts.items() if key != "labels"}),
        _packed_block("sysdock-pieces", whole.pieces),
        _packed_block("sysdock-files", json.dumps(files, separators=(",", ":")).encode()),
    ]
    body = _body(shown, lang, options.find)
    name = f"{title(shown)} - sysdock"
    return document(
        name, lang, body, [], style=("report.css", "map.css"), script="map.js", data=blocks
    ).encode()


def _files(recording: Path, inodes: list[int]) -> list[list[Any]]:
    """Path, fragments and length of each file, in the order in which the pieces name them."""
    from sysdock.analysis import Session
    from sysdock.recording import Recording

    with Session(Recording.open(recording)) as session:
        if "inodes" not in session.recording.tables:
            return [[f"inode {inode}", 0, 0] for inode in inodes]
        rows = session.fetch("SELECT inode, path, fragments, size_bytes FROM inodes")
    known = {inode: [path or f"inode {inode}", fragments, size] for inode, path, fragments, size in rows}
    return [known.get(inode, [f"inode {inode}", 0, 0]) for inode in inodes]


def _packed_block(name: str, content: bytes) -> str:
    # Without a header, as `deflate-raw` of a browser's DecompressionStream reads it.
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = base64.b64encode(packer.compress(content) + packer.flush()).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>'


def _body(shown: dict[str, Any], lang: str, find: str | None) -> str:
    help_ = both(
        fact("disk_map/click_whose_cell_double"),
    )
    field = '<input type="search" name="path" placeholder="/var/lib">'
    no_script = both(fact("disk_map/map_needs_javascript"))
    label = attribute("aria-label", fact("disk_map/map", title=title(shown)))
    return f"""{page_head(lang)}
<main><h1>{text(title(shown))}</h1>
<noscript><p class="warn">{no_script}</p></noscript>
<p class="muted">{help_}</p>
<div class="map">
<canvas id="map" width="768" height="768" tabindex="0" role="img"{label}></canvas>
<aside>
<p><button type="button" id="out">{both(fact("disk_map/zoom_out"))}</button>
<span id="scale" class="muted"></span></p>
<form id="search" class="tools">
<label>{both(fact("disk_map/file_or_directory"))} {field}</label>
<button type="submit">{both(fact("disk_map/light_up"))}</button>
<button type="reset">{both(fact("disk_map/all"))}</button></form>
<div id="found" class="files"></div>
{_legend(shown, find)}
{_remarks(shown)}
</aside></div></main>"""


def _legend(shown: dict[str, Any], find: str | None) -> str:
    rows = []
    for number, share in enumerate(shown["shares"]):
        name, meaning = CLASSES[share["class"]]
        amount = f"{percent_of(share['bytes'], shown['length'])}, {human_bytes(share['bytes'])}"
        rows.append(
            f'<tr><td><canvas class="swatch" id="swatch-{number}" width="22" height="22"></canvas></td>'
            f'<td>{both(name)}<br><span class="muted">{both(meaning)}</span></td>'
            f"<td>{amount}</td></tr>"
        )
    lit = ""
    if find is not None:
        words = both(fact("disk_map/lit"))
        lit = f'<p>{words}: <code class="lit">{text(find)}</code> {human_bytes(shown["lit_bytes"])}</p>'
    return f'<table class="legend">{"".join(rows)}</table>{lit}'


def _remarks(shown: dict[str, Any]) -> str:
    lines = remarks(shown)
    out = shown["packed"]["left_out"]
    if out["pieces"]:
        lines.append(
            fact(
                "disk_map/page_holds_longest_pieces",
                count=shown["packed"]["count"],
                pieces=out["pieces"],
                least=out["shorter_than_bytes"],
                held=out["bytes"],
            )
        )
    return "".join(f'<p class="muted">{both(line)}</p>' for line in lines)
