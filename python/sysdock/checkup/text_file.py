"""Opens the small files of users, compressed or not, with errors that state the expected format."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, cast

from sysdock.errors import UserError

_MOST_BYTES = 64 << 20
_GZIP = b"\x1f\x8b"


def open_packed(path: Path) -> IO[bytes]:
    """The content of a file that may be packed with gzip, as Debian rotates accounting files."""
    try:
        file = open(path, "rb")  # noqa: SIM115 (the caller closes it)
        if file.peek(2)[:2] != _GZIP:
            return file
        # It lacks only methods of IO that no reader uses.
        return cast(IO[bytes], gzip.open(file))
    except OSError as error:
        raise UserError(
            f"cannot be read: {(error.strerror or str(error)).lower()}", place=str(path)
        ) from None


def read_text(path: Path, what: str) -> str:
    """A text file; `what` names what it should be. Bytes that are not UTF-8 are replaced."""
    try:
        with open_packed(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot be read: {text.lower()}", place=str(path)) from None
    if len(data) > _MOST_BYTES:
        raise UserError(f"larger than {_MOST_BYTES >> 20} MiB: not {what}", place=str(path))
    if b"\0" in data:
        raise UserError(f"a binary file, not {what}", place=str(path))
    return data.decode("utf-8", "replace")
