"""Pieces of HTML. Everything that was recorded passes through `text`, which makes it harmless and visible."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

_FENCE = re.compile(r"^(`{3,}|~{3,})")
_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_JAPANESE = "[\u3000-\u9fff\uff00-\uffef]"
# As `attribute` writes it: what was recorded has no quotes, and so cannot look like this.
_IN_BOTH = re.compile(r'="([^"]*)" data-other="([^"]*)"')


def text(value: object) -> str:
    """A value as HTML text, also fit for an attribute; control and direction characters become visible."""
    words = str(value)
    if not words.isprintable():
        words = "".join(_visible(char) for char in words)
    return html.escape(words, quote=True)


def _visible(char: str) -> str:
    if char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return char
    # The control pictures block shows U+0000 to U+001F; the rest is named by its number.
    return chr(0x2400 + ord(char)) if ord(char) < 0x20 else f"<U+{ord(char):04X}>"


def both(english: str, japanese: str) -> str:
    """Two languages of one piece of HTML, of which the page shows the chosen one."""
    return f'<span class="t" lang="en">{english}</span><span class="t" lang="ja">{japanese}</span>'


def both_blocks(english: str, japanese: str) -> str:
    """The same for paragraphs."""
    return f'<div class="t" lang="en">{english}</div><div class="t" lang="ja">{japanese}</div>'


def attribute(name: str, english: str, japanese: str) -> str:
    """An attribute of plain text in two languages (`title`, `aria-label`, `alt`), with a blank before it.

    An attribute has one value: the English one, and the other stands next to it. `document` exchanges them in
    a page that opens in Japanese, and report.js when the reader switches. An element has one such attribute.
    """
    other = f' data-other="{text(japanese)}"' if japanese != english else ""
    return f' {name}="{text(english)}"{other}'


def opened_in(lang: str, body: str) -> str:
    """The HTML with its attributes in the language that the page opens in."""
    return _IN_BOTH.sub(r'="\2" data-other="\1"', body) if lang == "ja" else body


def join(parts: Iterable[str]) -> str:
    """Pieces one after the other, a line each."""
    return "\n".join(part for part in parts if part)


def prose(markdown: str) -> str:
    """The Markdown that pages use: paragraphs, lists, code blocks, `code`, **strong**; links as words."""
    blocks: list[str] = []
    lines = markdown.splitlines()
    at = 0
    while at < len(lines):
        start = at
        if fence := _FENCE.match(lines[at]):
            at += 1
            while at < len(lines) and not lines[at].startswith(fence[1]):
                at += 1
            blocks.append(f"<pre><code>{text_lines(lines[start + 1 : at])}</code></pre>")
            at += 1
        elif not lines[at].strip():
            at += 1
        elif lines[at].startswith(("- ", "* ")):
            while at < len(lines) and lines[at].strip():
                at += 1
            blocks.append(_list(lines[start:at]))
        else:
            while at < len(lines) and lines[at].strip() and not _FENCE.match(lines[at]):
                at += 1
            blocks.append(f"<p>{inline(_joined(lines[start:at]))}</p>")
    return "\n".join(blocks)


def inline(words: str) -> str:
    """One paragraph of Markdown as HTML."""
    parts = []
    for place, part in enumerate(_CODE.split(words)):
        if place % 2:
            parts.append(f"<code>{text(part)}</code>")
        else:
            parts.append(_STRONG.sub(r"<strong>\1</strong>", text(_LINK.sub(r"\1", part))))
    return "".join(parts)


def text_lines(lines: list[str]) -> str:
    """Lines of a block as they are."""
    return "\n".join(text(line) for line in lines)


def _list(lines: list[str]) -> str:
    items: list[list[str]] = []
    for line in lines:
        if line.startswith(("- ", "* ")):
            items.append([line[2:]])
        else:
            items[-1].append(line)
    return "<ul>" + "".join(f"<li>{inline(_joined(item))}</li>" for item in items) + "</ul>"


def _joined(lines: list[str]) -> str:
    words = " ".join(line.strip() for line in lines)
    # Japanese has no blanks between words: a line break there is not one either.
    return re.sub(f"(?<={_JAPANESE}) (?={_JAPANESE})|(?<=[、。]) ", "", words)
