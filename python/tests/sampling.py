"""How many are tried of what is tried by samples: few with every change, more in `tools/check more`, all when asked for.

SYSDOCK_SAMPLES is `few` (as when it is not set), `more` or `all`.
"""

import os
from typing import TypeVar

_WANTED = os.environ.get("SYSDOCK_SAMPLES", "few")
ALL = _WANTED == "all"

T = TypeVar("T")


def sampled(few: T, more: T) -> T:
    """The one for every change, or that for whoever has an hour."""
    return few if _WANTED == "few" else more
