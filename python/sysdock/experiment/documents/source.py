"""The sources of all documents of an experiment: its file, and the tables of its recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sysdock.analysis import Session
from sysdock.analysis.writing import cell, heading
from sysdock.experiment.documents.blocks import Block, Paragraph, Table
from sysdock.experiment.environment import Row
from sysdock.library import Experiment
from sysdock.sentences import Words, fact, facts_from_json, is_source, named, say


@dataclass(frozen=True)
class Source:
    """`options`: what the recording keeps of the command line (command, seed). `lang`: of the document."""

    experiment: Experiment
    session: Session
    options: Mapping[str, Any]
    lang: str

    def say(self, words: Words) -> str:
        """Words in the language of this document."""
        return say(words, self.lang)

    def head(self, *names: str) -> tuple[str, ...]:
        """Heads of a table, as `knowhow/sentences/documents.toml` calls them."""
        return tuple(self.say(fact(f"documents/head_{name}")) for name in names)

    @property
    def title(self) -> str:
        """The title of the experiment."""
        return self.say(self.experiment.titles)

    def note(self, text: str | None) -> str | None:
        """Facts of the recording, in the language of the document; other values as they were read."""
        return text and self.say(facts_from_json(text))

    def environment(self) -> list[Row]:
        """Rows of the table of that name."""
        return self.session.fetch("SELECT section, name, value, source FROM environment")

    def field(self, section: str, name: str) -> str:
        """A field of the environment as this document calls it."""
        if is_source(self.lang):
            return name
        fields = (
            each for own in self.session.library.environment() if own.id == section for each in own.fields
        )
        for field in fields:
            place, named, end = field.name.partition("{1}")
            if name == field.name:
                return self.say(field.texts)
            if named and name.startswith(place) and name.endswith(end):
                return self.say(field.texts).replace("{1}", name[len(place) : len(name) - len(end)])
        return name

    def incomplete(self) -> Iterator[Block]:
        """A paragraph where the experiment was ended before its end."""
        if not self.session.recording.manifest["complete"]:
            ended = named("endings", self.session.recording.ended_by)
            yield Paragraph(self.say(fact("documents/not_complete_ended_tables", ended=ended)))

    def shown(self, analysis: str) -> list[Block]:
        """The table of an analysis, and the command that prints it; nothing where it has no rows.

        Nor where the recording is of an earlier version, which did not have its table.
        """
        if self.session.missing(self.session.library.analysis(analysis)):
            return []
        result = self.session.run(analysis)
        head = tuple(heading(column) for column in result.columns)
        rows = tuple(
            tuple(
                cell(self.note(value) if column.unit == "fact" else value, column)
                for value, column in zip(row, result.columns, strict=True)
            )
            for row in result.rows()
        )
        if not rows:
            return []
        words = self.say(
            fact("documents/sysdock_show_rec_prints", analysis=analysis),
        )
        return [Table(head, rows), Paragraph(words)]
