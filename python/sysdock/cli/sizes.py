"""Sizes on the command line: bytes, or with a unit after the number, `16M`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sysdock.errors import UserError

# click's older versions have no type arguments when they run.
if TYPE_CHECKING:
    _NumberType = click.ParamType[int]
else:
    _NumberType = click.ParamType


class Size(_NumberType):
    """A size in bytes: `4096`, `4K`, `16MiB`; K, M and G are powers of 1024, kB, MB and GB of 1000."""

    name = "size"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes; fails where it is no size, or too small."""
        size = value if isinstance(value, int) else self._bytes_of(value, param, ctx)
        if size < self.least:
            self.fail(f"{value} is less than {self.least:,} bytes", param, ctx)
        return size

    def _bytes_of(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from sysdock.health.units import bytes_of

        try:
            return bytes_of(value)
        except UserError as error:
            self.fail(error.fact, param, ctx)
