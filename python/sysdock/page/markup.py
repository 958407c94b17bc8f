"""Pieces of HTML. Everything that was recorded passes through `text`, which makes it harmless and visible."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from sysdock.sentences import Fact, Joined, Prose, Words, in_all, is_source, languages, say

_FENCE = re.compile(r"^(`{3,}|~{3,})")
_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_JAPANESE = "[\u3000-\u9fff\uff00-\uffef]"


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


class Html(str):
    """A value within words that is HTML already: a link, code."""


def both(words: Words) -> str:
    """Words as HTML in every language, of which the page shows the chosen one; once if they do not differ."""
    found = {lang: _html(words, lang) for lang in languages()}
    return _once(found) or "".join(
        f'<span class="t" lang="{lang}">{part}</span>' for lang, part in found.items()
    )


def both_blocks(blocks: Mapping[str, str]) -> str:
    """HTML of paragraphs by language; a language that is missing has the first one's."""
    first = next(iter(blocks.values()), "")
    found = {lang: blocks.get(lang, first) for lang in languages()}
    return "".join(f'<div class="t" lang="{lang}">{part}</div>' for lang, part in found.items())


def prose_blocks(words: Prose | None) -> str:
    """Markdown in every language."""
    return both_blocks({lang: prose(part) for lang, part in words.texts.items()}) if words else ""


def _once(found: Mapping[str, str]) -> str | None:
    texts = set(found.values())
    return texts.pop() if len(texts) == 1 else None


# Placeholders for values that are HTML while the text around them is escaped. Recorded data contain no NUL.
_PLACE = re.compile("\0([0-9]+)\0")


def _html(words: Words, lang: str) -> str:
    held: list[str] = []
    said = _PLACE.split(say(_held(words, held), lang))
    return "".join(held[int(part)] if number % 2 else text(part) for number, part in enumerate(said))


def _held(words: Any, held: list[str]) -> Any:
    """The words with places for what is HTML in them."""
    if isinstance(words, Html):
        held.append(words)
        return f"\0{len(held) - 1}\0"
    if isinstance(words, Fact):
        return Fact(words.code, {name: _held(value, held) for name, value in words.values.items()})
    if isinstance(words, Joined):
        return Joined(tuple(_held(part, held) for part in words.parts), words.by)
    return words.replace("\0", "\ufffd") if isinstance(words, str) else words


def attribute(name: str, words: Words) -> str:
    """An attribute of plain text (`title`, `aria-label`, `alt`) in every language, with a blank before it.

    An attribute has one value: the one in the first language, and the others stand next to it. `document`
    puts the one in its place that the page opens in, and report.js does when the reader switches. An element
    has one such attribute.
    """
    first, *others = in_all(words).items()
    rest = "".join(f' data-in-{lang}="{text(said)}"' for lang, said in others if said != first[1])
    return f' {name}="{text(first[1])}"{rest}' + (f' data-in-{first[0]}="{text(first[1])}"' if rest else "")


def opened_in(lang: str, body: str) -> str:
    """The HTML with its attributes in the language that the page opens in."""
    if is_source(lang):
        return body
    return re.sub(rf'="[^"]*"((?: data-in-[a-z]+="[^"]*")*? data-in-{lang}="([^"]*)")', r'="\2"\1', body)


def join(parts: Iterable[str]) -> str:
    """Parts joined, a line each."""
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
