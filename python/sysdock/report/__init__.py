"""Writes the report of a recording: one HTML file that calls nowhere, or Markdown, or JSON."""

from __future__ import annotations

from pathlib import Path

from sysdock.analysis import Session
from sysdock.chart.output import write_atomically
from sysdock.errors import UserError
from sysdock.report.brief import as_json, markdown
from sysdock.report.writer import report
from sysdock.sentences import languages

FORMATS = {"html": report, "md": markdown, "json": as_json}


def as_text(session: Session, format_: str = "html", lang: str = "en") -> str:
    """The report as text; `lang` is the language it is in, or opens in.

    UserError: another format or language.
    """
    if format_ not in FORMATS:
        raise UserError(
            f"there is no format `{format_}`", f"the formats are {', '.join(FORMATS)}", "--format"
        )
    if lang not in languages():
        hint = f"the languages are {', '.join(languages())}"
        raise UserError(f"there is no language `{lang}`", hint, "--lang")
    return FORMATS[format_](session, lang)


def write_report(session: Session, path: Path | str, lang: str = "en", format_: str = "html") -> None:
    """Writes the report to `path` in one step. UserError as above, or where it cannot be written."""
    write_atomically(Path(path), as_text(session, format_, lang).encode())


__all__ = ["as_text", "write_report"]
