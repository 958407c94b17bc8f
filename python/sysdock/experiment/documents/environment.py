"""The environment definition: what the results hold for, field by field, and how it differs from others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sysdock.experiment.documents.blocks import Block, Heading, Items, Paragraph, table
from sysdock.experiment.documents.source import Source
from sysdock.experiment.environment import Difference, Row, between, from_default, is_unreadable
from sysdock.sentences import fact

_BY_HAND = (
    fact("documents/who_measured_when_whom"),
    fact("documents/settings_firmware_differ_from"),
    fact("documents/cooling_power_limits_what"),
    fact("documents/network_switches_between_machines"),
    fact("documents/known_deviations_from_procedure"),
)


def environment_definition(source: Source, other: Sequence[Row] | None = None) -> list[Block]:
    """`other`: the environment of another recording, to name what differs."""
    say = source.say
    rows = source.environment()
    sections = source.session.library.environment()
    unread = sum(is_unreadable(value) for _, _, value, _ in rows)
    blocks: list[Block] = [
        Heading(1, say(fact("documents/environment", title=source.title))),
        *source.incomplete(),
        Paragraph(
            say(
                fact("documents/fields_read_start_experiment", rows=len(rows), unread=unread),
            )
        ),
    ]
    if other is not None:
        head = source.head("section", "field", "this_machine", "the_other")
        words = say(fact("documents/differences_from_other_machine"))
        blocks += [Heading(2, words), *_differences(source, head, between(sections, rows, other))]
    head = source.head("section", "field", "value", "default")
    words = say(fact("documents/differences_from_defaults_kernel"))
    blocks += [Heading(2, words), *_differences(source, head, from_default(sections, rows))]
    known = [section.id for section in sections]
    for section in [*known, *dict.fromkeys(row[0] for row in rows if row[0] not in known)]:
        blocks += _section(source, section, rows)
    blocks += [Heading(2, say(fact("documents/filled_hand")))]
    return [*blocks, Items(tuple(say(words) for words in _BY_HAND))]


def _differences(source: Source, head: Sequence[str], found: Sequence[Difference]) -> Iterator[Block]:
    if found:
        rows = [
            (
                one.section,
                source.field(one.section, one.name),
                source.note(one.here),
                source.note(one.there),
            )
            for one in found
        ]
        yield table(head, rows)
    else:
        yield Paragraph(source.say(fact("documents/none_fields_compared")))


def _section(source: Source, section: str, rows: Sequence[Row]) -> Iterator[Block]:
    own = [
        (source.field(section, name), source.note(value), origin)
        for of, name, value, origin in rows
        if of == section
    ]
    if not own:
        return
    about = next((each for each in source.session.library.environment() if each.id == section), None)
    title = source.say(about.texts) if about else section
    yield Heading(2, title)
    yield table(source.head("field", "value", "source"), own)
