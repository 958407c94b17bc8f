"""Verdicts as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sysdock.experiment.verdicts import CHANGED, INCONCLUSIVE, INVALID
from sysdock.sentences import Words, fact, facts_from_json


def of_verdict(row: Mapping[str, Any], margin: float) -> Words:
    """A row of `experiment_verdicts` as a sentence. `margin`: of the claim, as a part."""
    verdict = fact(f"experiment/{_verdict_code(row)}", margin=margin, **_numbers(row))
    parts: list[Words] = [verdict]
    if row["verdict"] in (INCONCLUSIVE, INVALID) and row["reason"]:
        parts = [fact("experiment/because", what=verdict, why=facts_from_json(row["reason"]))]
    if row["ratio_low"] is not None and row["verdict"] != INVALID:
        low, high = 100 * (row["ratio_low"] - 1), 100 * (row["ratio_high"] - 1)
        parts = [fact("experiment/with_interval", what=parts[0], low=low, high=high)]
    if row["verdict"] == INCONCLUSIVE and row["smallest_visible"] is not None:
        percent = 100 * row["smallest_visible"]
        # Two digits, and never a power of ten.
        shown = f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
        parts = [fact("experiment/with_visible", what=parts[0], percent=shown)]
    return fact("experiment/of_metric", metric=row["metric"], what=parts[0])


def _verdict_code(row: Mapping[str, Any]) -> str:
    if row["verdict"] == CHANGED:
        return "changed_from_to" if row["ratio"] is None else "changed"
    return str(row["verdict"])


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "percent": None if row["ratio"] is None else 100 * (row["ratio"] - 1),
        "before": number(row["baseline_median"]),
        "after": number(row["scenario_median"]),
        "p": row["p"],
    }


def number(value: float | None) -> str:
    """Four digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 or value == int(value) else f"{value:.4g}"
