"""Writes large results without passing them through Python row by row.

The engine's COPY writes to one end of a pipe, a thread carries the bytes from the other end to the output.
(COPY straight to /dev/stdout would truncate a file that standard output was redirected to.)
"""

from __future__ import annotations

import codecs
import os
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, cast

from sysdock.analysis.errors import engine_errors
from sysdock.errors import UserError
from sysdock.recording.harmless import harmless
from sysdock.text import harmless_json

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

_FORMATS = {"csv": "FORMAT csv, HEADER true", "json": "FORMAT json, ARRAY true"}
_CHUNK = 1 << 16


def copy_select(
    session: Session,
    select: str,
    bound: dict[str, Any],
    types: dict[str, str],
    out: IO[bytes] | IO[str],
    format: str,
    place: str | None = None,
    *,
    raw: bool = False,
) -> None:
    """Writes the rows of `select`, whose columns have `types`, to `out` as `csv` or `json`.

    Recorded names steer no terminal and no spreadsheet; with `raw` they stand in CSV as they are.
    """
    if format not in _FORMATS:
        raise UserError(f"unknown format {format}", f"the formats are {', '.join(_FORMATS)}")
    # Text is written through the binary stream below it.
    binary = cast(IO[bytes], getattr(out, "buffer", out))
    if format == "json":
        # The engine writes an empty array over three lines, and NaN, which is not JSON.
        probe = session.fetch(f"SELECT 1 FROM (\n{select}\n) AS probe LIMIT 1", bound, place)
        if not probe:
            _write(binary, b"[]\n")
            return
        select = _without_nan(select, types)
    elif not raw:
        select = harmless(select, [name for name, type_ in types.items() if type_ == "VARCHAR"])
    _Pipe(binary, _HarmlessJson() if format == "json" else None).run(
        session, select, bound, _FORMATS[format], place
    )


def _without_nan(select: str, types: dict[str, str]) -> str:
    names = ['"' + name.replace('"', '""') + '"' for name, type_ in types.items() if type_ == "DOUBLE"]
    if not names:
        return select
    replaced = ", ".join(f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" for name in names)
    return f"SELECT * REPLACE ({replaced}) FROM (\n{select}\n) AS finite"


def _write(binary: IO[bytes], data: bytes) -> None:
    binary.write(data)
    binary.flush()


class _HarmlessJson:
    """Escapes characters in a stream of JSON; the chunks of the stream may end within a character."""

    def __init__(self) -> None:
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def __call__(self, data: bytes) -> bytes:
        return harmless_json(self.decode(data, final=not data)).encode()


class _Pipe:
    """Carries what the engine writes to a file object, and its troubles back; `change` is made on the way."""

    def __init__(self, binary: IO[bytes], change: Callable[[bytes], bytes] | None = None) -> None:
        self.binary = binary
        self.change = change
        self.trouble: BaseException | None = None

    def run(
        self, session: Session, select: str, bound: dict[str, Any], options: str, place: str | None
    ) -> None:
        read_end, write_end = os.pipe()
        carrier = threading.Thread(target=self.carry, args=(read_end,), daemon=True)
        carrier.start()
        try:
            # The views have to be made for the SELECT: the engine gives no parse tree for a COPY.
            with engine_errors(place):
                session.views.prepare(select)
            self.copy(session, f"COPY (\n{select}\n) TO '/dev/fd/{write_end}' ({options})", bound, place)
        finally:
            os.close(write_end)
            carrier.join()
        if self.trouble:
            raise self.trouble

    def copy(self, session: Session, sql: str, bound: dict[str, Any], place: str | None) -> None:
        with engine_errors(place):
            try:
                session.views.connection.execute(sql, bound) if bound else session.views.connection.execute(
                    sql
                )
            except Exception:
                # The engine complains about a closed pipe when the output is what failed; that comes first.
                if not self.trouble:
                    raise

    def carry(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            try:
                while data := pipe.read(_CHUNK):
                    self.binary.write(self.change(data) if self.change else data)
                if self.change:
                    self.binary.write(self.change(b""))
                self.binary.flush()
            except (OSError, ValueError) as error:
                self.trouble = error
