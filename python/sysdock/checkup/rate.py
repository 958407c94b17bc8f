"""Step 2, rate: how fast a recording moved its data, against what the site's file systems can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sysdock.checkup.answers import Question, answers
from sysdock.checkup.statement import Part

if TYPE_CHECKING:
    from sysdock.analysis import Session

TABLE = "site_rates"
_QUESTION = Question(
    "rate",
    "checkup/transfer_rate",
    columns={"subject": "folder", "value": "rate", "limit_value": "expected"},
    names={"subject": "path"},
)


def rate_rows(rates: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Rows of `site_rates`, of rates in B/s by folder and direction."""
    return [
        {"folder": folder.rstrip("/") or "/", "direction": direction, "bytes_per_second": rate}
        for folder, values in rates.items()
        for direction, rate in values.items()
    ]


def rate_parts(session: Session) -> list[Part]:
    """Answers of the rule for each folder and direction for which the site has a rate."""
    return answers(session, _QUESTION)
