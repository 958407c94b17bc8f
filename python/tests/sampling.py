"""Sample sizes of tests: small in `tools/check`, larger in `tools/check more`.

The environment variable SYSDOCK_SAMPLES selects them: `few` (the default), `more` or `all`.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

_WANTED = os.environ.get("SYSDOCK_SAMPLES", "few")
if _WANTED not in ("few", "more", "all"):
    raise ValueError(f"SYSDOCK_SAMPLES is {_WANTED!r}: few, more or all")
ALL = _WANTED == "all"

T = TypeVar("T")


def sampled(few: T, more: T) -> T:
    """Returns `more` where a larger sample was selected."""
    return few if _WANTED == "few" else more


def some(cases: Iterable[T], one_in: int) -> list[T]:
    """Returns the first of every `one_in` cases, or all where a larger sample was selected."""
    return list(cases)[:: sampled(one_in, 1)]
