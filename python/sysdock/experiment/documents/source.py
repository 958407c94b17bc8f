"""What all documents of an experiment are made from: its file, and the tables of its recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sysdock.analysis import Session
from sysdock.analysis.writing import cell, heading
from sysdock.experiment.documents.blocks import Block, Paragraph, Table
from sysdock.experiment.environment import Row
from sysdock.library import Experiment
from sysdock.library.headings import japanese_value
from sysdock.page.statements_ja import ending_ja

# How a field of the environment begins that has no value.
_NO_VALUE = ("not applicable", "not stated", "unreadable")
# Columns with sentences, not names.
_NOTES = ("reason", "note")


@dataclass(frozen=True)
class Source:
    """`options`: what the recording keeps of the command line (command, seed). `english`: else Japanese."""

    experiment: Experiment
    session: Session
    options: Mapping[str, Any]
    english: bool = True

    def say(self, english: str, japanese: str) -> str:
        """The one of both that this document is in."""
        return english if self.english else japanese

    @property
    def title(self) -> str:
        """Of the experiment."""
        return self.say(self.experiment.title, self.experiment.title_ja)

    def note(self, text: str | None) -> str | None:
        """A reason or note of the recording, in the language of the document."""
        return text if self.english or text is None else japanese_value(text)

    def environment(self) -> list[Row]:
        """Rows of the table of that name."""
        return self.session.fetch("SELECT section, name, value, source FROM environment")

    def field(self, section: str, name: str) -> str:
        """A field of the environment as this document calls it."""
        if self.english:
            return name
        fields = (
            each for own in self.session.library.environment() if own.id == section for each in own.fields
        )
        for field in fields:
            place, named, end = field.name.partition("{1}")
            if name == field.name:
                return field.text_ja
            if named and name.startswith(place) and name.endswith(end):
                return field.text_ja.replace("{1}", name[len(place) : len(name) - len(end)])
        return name

    def value(self, value: str | None) -> str | None:
        """Why a field has no value, in the language of the document; values as they were read."""
        return self.note(value) if (value or "").startswith(_NO_VALUE) else value

    def incomplete(self) -> Iterator[Block]:
        """A paragraph where the experiment was ended before its end."""
        if not self.session.recording.manifest["complete"]:
            ended = self.session.recording.ended_by
            yield Paragraph(
                self.say(
                    f"**Not complete**: ended by `{ended}`. The tables have what was measured until then.",
                    f"**未完了**: {ending_ja(ended)}。表はそれまでの測定値。",
                )
            )

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
                cell(self.note(value) if column.name in _NOTES else value, column)
                for value, column in zip(row, result.columns, strict=True)
            )
            for row in result.rows()
        )
        if not rows:
            return []
        words = self.say(
            f"`sysdock show REC {analysis}` prints this table, and says what its columns mean.",
            f"この表は `sysdock show REC {analysis}` で表示でき、列の意味もそこにある。",
        )
        return [Table(head, rows), Paragraph(words)]
