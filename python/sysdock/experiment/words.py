"""Verdicts in words, in English and Japanese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sysdock.experiment.verdicts import CHANGED, EQUIVALENT, INCONCLUSIVE
from sysdock.library.headings import japanese_value
from sysdock.text import human_ns

# Causes of a scenario that the terminal shows.
_MOST_CAUSES = 6


def of_verdict(row: Mapping[str, Any], margin: float) -> tuple[str, str]:
    """A row of `experiment_verdicts` as a sentence. `margin`: of the claim, as a part."""
    metric = row["metric"]
    if row["verdict"] == CHANGED:
        return _changed(row)
    between, between_ja = _interval(row)
    if row["verdict"] == EQUIVALENT:
        return (
            f"{metric}: equivalent within {100 * margin:g} %{between}",
            f"{metric}: ±{100 * margin:g} % 以内で同等{between_ja}",
        )
    reason = row["reason"]
    why, why_ja = (f": {reason}", f": {japanese_value(reason)}") if reason else ("", "")
    if row["verdict"] == INCONCLUSIVE:
        visible, visible_ja = _visible(row)
        return (
            f"{metric}: inconclusive{why}{between}{visible}",
            f"{metric}: 判定不能{why_ja}{between_ja}{visible_ja}",
        )
    return f"{metric}: invalid{why}", f"{metric}: 無効{why_ja}"


def _changed(row: Mapping[str, Any]) -> tuple[str, str]:
    metric = row["metric"]
    between, between_ja = _interval(row)
    if row["ratio"] is None:
        step = f"from {number(row['baseline_median'])} to {number(row['scenario_median'])}"
        step_ja = f"{number(row['baseline_median'])} から {number(row['scenario_median'])} に変化"
        return f"{metric}: changed {step} (p = {row['p']:.2g})", f"{metric}: {step_ja} (p = {row['p']:.2g})"
    percent = 100 * (row["ratio"] - 1)
    return f"{metric}: changed by {percent:+.1f} %{between}", f"{metric}: {percent:+.1f} % 変化{between_ja}"


def _interval(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["ratio_low"] is None:
        return "", ""
    low, high = 100 * (row["ratio_low"] - 1), 100 * (row["ratio_high"] - 1)
    return f" (interval {low:+.1f} to {high:+.1f} %)", f" (区間 {low:+.1f} 〜 {high:+.1f} %)"


def _visible(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["smallest_visible"] is None:
        return "", ""
    percent = 100 * row["smallest_visible"]
    # Two digits, and never a power of ten.
    words = f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
    return f"; smallest visible change {words} %", f"。検出できる最小の変化は {words} %"


def of_causes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of `experiment/causes` of one scenario and case as lines of a table; the remainder comes last."""
    shown = [*rows[: _MOST_CAUSES - 1], *rows[-1:]] if len(rows) > _MOST_CAUSES else rows
    width = max((len(f"{row['kind']}: {row['name']}") for row in shown), default=0)
    found = []
    for row in shown:
        share = "" if row["share"] is None else f"{100 * row['share']:5.0f} % of the difference"
        what = f"{row['kind']}: {row['name']}"
        found.append(f"  {what:<{width}}  {_difference(row):>14}  {share}".rstrip())
    if len(shown) < len(rows):
        found.insert(-1, f"  ... and {len(rows) - len(shown)} more")
    return found


def _difference(row: Mapping[str, Any]) -> str:
    value, unit = row["difference_per_unit"], row["unit"]
    sign = "-" if value < 0 else "+"
    if unit == "ns":
        return sign + human_ns(round(abs(value)))
    return f"{sign}{number(abs(value))} {unit}"


def number(value: float | None) -> str:
    """Four digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 or value == int(value) else f"{value:.4g}"
