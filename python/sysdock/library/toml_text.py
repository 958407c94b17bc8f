"""Reads TOML that anybody may have written."""

from __future__ import annotations

import tomllib
from typing import Any


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a text; a ValueError says what is wrong with it, in words that follow `not TOML: `."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        # What Python says of it tells programmers how to switch the limit off.
        raise ValueError("a number of thousands of digits") from None
