"""Turns what the engine says into an error that names the file and fits a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sysdock.errors import NotComputed, UserError, interruptions

_KIND = re.compile(r"^[A-Z][A-Za-z ]*Error: ")
# An error may state the value that it is about, which was recorded and can be of any length.
_LONGEST = 300
_LESS = "ask for less at once: a time window (--from, --until), one --file, or one --process"


def first_line(error: Exception) -> str:
    """The message of an engine error, without its kind and the lines that repeat the statement."""
    lines = [line for line in _KIND.sub("", str(error)).splitlines() if line.strip()]
    text = lines[0].strip() if lines else type(error).__name__
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return text[:1].lower() + text[1:].rstrip(".!") if not text[:2].isupper() else text.rstrip(".!")


@contextmanager
def engine_errors(place: str | None = None) -> Iterator[None]:
    """Raises a UserError at `place` for every error of the engine in its body.

    A mistake in the statement is a plain UserError. What only shows with the rows of one recording is
    NotComputed.
    """
    from sysdock.engine import duckdb

    try:
        with interruptions():
            yield
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise NotComputed(f"not enough memory: {first_line(error)}", _LESS, place) from None
    except duckdb.InterruptException as error:
        if "time" not in str(error).lower():
            raise KeyboardInterrupt from None
        raise NotComputed("the query exceeded its time limit", "ask for less at once", place) from None
    except duckdb.Error as error:
        if "pytz" in str(error):
            fact = "a column has a type with a time zone, which cannot be shown"
            raise UserError(fact, "write CAST(... AS VARCHAR), or keep integer nanoseconds", place) from None
        mistakes = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
        kind = UserError if isinstance(error, mistakes) else NotComputed
        raise kind(first_line(error), place=place) from None
