"""Results of an experiment."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.sections.section import Capture, Fact, Section, Statement

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.library import Analysis

_TABLES = (
    "experiment_cases",
    "experiment_runs",
    "experiment_metrics",
    "experiment_facts",
    "experiment_profiles",
    "experiment_stacks",
    "experiment_methods",
    "experiment_verdicts",
    "experiment_checks",
    "experiment_causes",
)


def _coverage(_session: Session, _capture: Capture) -> Sequence[Fact]:
    # It measured; there was no input to understand.
    return []


def _statement(session: Session, folder: str) -> Statement | None:
    """The commands that show its results.

    `folder`: what the commands call the recording. Who looks for findings must hear it: rules are about
    programs and disks, and that they are silent is no pass.
    """
    analyses = [analysis for analysis in session.library.analyses() if _is_of_results(session, analysis)]
    shown = [f"sysdock show {shlex.quote(folder)} {analysis.id}" for analysis in analyses]
    if not shown:
        text = "This is the recording of an experiment, and it has no results."
        return Statement((text, "これは実験の記録ですが、結果がありません。"), [])
    text = "This is the recording of an experiment: rules do not judge it. Its results:"
    japanese = "これは実験の記録で、ルールの対象ではありません。結果は次のコマンドで表示できます:"
    return Statement((text, japanese), shown)


def _is_of_results(session: Session, analysis: Analysis) -> bool:
    """Whether an analysis reads results of experiments, and this recording has them."""
    return bool(set(_TABLES) & set(analysis.needs)) and not session.missing(analysis)


SECTION = Section(
    about="experiment",
    order=60,
    needs=("experiment_cases",),
    title=("experiment", "実験"),
    coverage=_coverage,
    statement=_statement,
    instead="`sysdock diagnose REC` says what shows its results",
)
