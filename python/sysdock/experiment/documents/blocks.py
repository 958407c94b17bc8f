"""Parts of documents, and their output as Markdown, and as HTML in all languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sysdock.page.document import document, page_head
from sysdock.page.markup import both_blocks, inline, text
from sysdock.text import printable


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    level: int
    words: str


@dataclass(frozen=True)
class Paragraph:
    """Words of our own, with `code` and **strong**."""

    words: str


@dataclass(frozen=True)
class Items:
    """A list; numbered where the order matters."""

    items: tuple[str, ...]
    is_numbered: bool = False


@dataclass(frozen=True)
class Code:
    """Lines as they are typed."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Cells are texts that may have been recorded anywhere."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Paragraph | Items | Code | Table


def table(head: Iterable[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of anything; None is a dash."""
    return Table(
        tuple(head), tuple(tuple("-" if cell is None else str(cell) for cell in row) for row in rows)
    )


def markdown(blocks: Iterable[Block]) -> str:
    """The document as Markdown; what was recorded cannot become markup."""
    return "\n".join(line for block in blocks for line in [*_markdown(block), ""])


def _markdown(block: Block) -> list[str]:
    match block:
        case Heading(level, words):
            return [f"{'#' * level} {printable(words)}"]
        case Paragraph(words):
            return [printable(words)]
        case Items(items, is_numbered):
            return [f"{f'{n}.' if is_numbered else '-'} {printable(item)}" for n, item in enumerate(items, 1)]
        case Code(lines):
            return [f"    {printable(line)}" for line in lines]
        case Table(head, rows):
            return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    plain = (printable(cell).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(plain)} |"


def page(by_language: Mapping[str, Sequence[Block]]) -> str:
    """All languages as one page of HTML, with a switch; it needs nothing but itself."""
    lang, first = next(iter(by_language.items()))
    title = next((block.words for block in first if isinstance(block, Heading)), "sysdock")
    body = both_blocks({each: "\n".join(map(_html, blocks)) for each, blocks in by_language.items()})
    return document(title, lang, f'{page_head(lang)}<main class="plain">{body}</main>', [])


def _html(block: Block) -> str:
    match block:
        case Heading(level, words):
            return f"<h{level}>{inline(words)}</h{level}>"
        case Paragraph(words):
            return f"<p>{inline(words)}</p>"
        case Items(items, is_numbered):
            kind = "ol" if is_numbered else "ul"
            return f"<{kind}>{''.join(f'<li>{inline(item)}</li>' for item in items)}</{kind}>"
        case Code(lines):
            return f"<pre><code>{_lines(lines)}</code></pre>"
        case Table(head, rows):
            cells = "".join(f'<th scope="col">{text(cell)}</th>' for cell in head)
            body = "".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in rows)
            return (
                '<div class="wrap" tabindex="0" role="region"><table class="data"><thead><tr>'
                f"{cells}</tr></thead><tbody>{body}</tbody></table></div>"
            )


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(text(line) for line in lines)
