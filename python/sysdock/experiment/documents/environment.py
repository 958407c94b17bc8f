"""The environment definition: what the results hold for, field by field, and how it differs from others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sysdock.experiment.documents.blocks import Block, Heading, Items, Paragraph, table
from sysdock.experiment.documents.source import Source
from sysdock.experiment.environment import UNREADABLE, Difference, Row, between, from_default

_BY_HAND = (
    ("Who measured, when, and for whom.", "測定者、測定日、依頼元。"),
    ("Settings of the firmware that differ from its defaults.", "既定値から変更したファームウェアの設定。"),
    (
        "Cooling, power limits, and what else shares the rack or the host.",
        "冷却、電力制限、同じマシン上のほかの負荷。",
    ),
    (
        "Network and switches between the machines, if there are several.",
        "複数のマシンを使う場合、間のネットワークとスイッチ。",
    ),
    ("Known deviations from the procedure.", "手順からの逸脱。"),
)


def environment_definition(source: Source, other: Sequence[Row] | None = None) -> list[Block]:
    """`other`: the environment of another recording, to name what differs."""
    say = source.say
    rows = source.environment()
    sections = source.session.library.environment()
    unread = sum((value or "").startswith(UNREADABLE) for _, _, value, _ in rows)
    blocks: list[Block] = [
        Heading(1, say(f"Environment: {source.title}", f"環境定義: {source.title}")),
        *source.incomplete(),
        Paragraph(
            say(
                f"{len(rows)} fields, read at the start of the experiment; {unread} of them could not be "
                "read, and say why.",
                f"{len(rows)} 項目を実験の開始時に採取した。読み取れなかった {unread} 項目には理由を記す。",
            )
        ),
    ]
    if other is not None:
        head = (
            ("section", "field", "this machine", "the other")
            if source.english
            else ("区分", "項目", "このマシン", "他方")
        )
        words = say("Differences from the other machine", "他方のマシンとの違い")
        blocks += [Heading(2, words), *_differences(source, head, between(sections, rows, other))]
    head = ("section", "field", "value", "default") if source.english else ("区分", "項目", "値", "既定値")
    words = say("Differences from the defaults of the kernel", "カーネルの既定値との違い")
    blocks += [Heading(2, words), *_differences(source, head, from_default(sections, rows))]
    known = [section.id for section in sections]
    for section in [*known, *dict.fromkeys(row[0] for row in rows if row[0] not in known)]:
        blocks += _section(source, section, rows)
    blocks += [Heading(2, say("To be filled in by hand", "手で記入する項目"))]
    return [*blocks, Items(tuple(say(*words) for words in _BY_HAND))]


def _differences(source: Source, head: Sequence[str], found: Sequence[Difference]) -> Iterator[Block]:
    if found:
        rows = [
            (
                one.section,
                source.field(one.section, one.name),
                source.value(one.here),
                source.value(one.there),
            )
            for one in found
        ]
        yield table(head, rows)
    else:
        yield Paragraph(source.say("None of the fields that are compared.", "比較した項目に違いはない。"))


def _section(source: Source, section: str, rows: Sequence[Row]) -> Iterator[Block]:
    own = [
        (source.field(section, name), source.value(value), origin)
        for of, name, value, origin in rows
        if of == section
    ]
    if not own:
        return
    about = next((each for each in source.session.library.environment() if each.id == section), None)
    title = source.say(about.text, about.text_ja) if about else section
    yield Heading(2, title)
    yield table(("field", "value", "source") if source.english else ("項目", "値", "出典"), own)
