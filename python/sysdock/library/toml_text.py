"""Reads TOML that anybody may have written, and writes texts for it."""

from __future__ import annotations

import json
import tomllib
from typing import Any


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a text; a ValueError describes a mistake, in words that may follow `not TOML: `."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        # Python's own message is for programmers: how to switch the limit off.
        raise ValueError("a number of thousands of digits") from None


def quoted(text: str) -> str:
    """A text as a TOML string: JSON's form is one too, but for the control character 127."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
