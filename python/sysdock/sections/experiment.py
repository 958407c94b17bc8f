"""Results of an experiment."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.sections.section import Capture, InfoLine, Section, Statement
from sysdock.sentences import fact

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


def _coverage(_session: Session, _capture: Capture) -> Sequence[InfoLine]:
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
        return Statement(fact("sections/experiment_without_results"), [])
    return Statement(fact("sections/results_of_experiment"), shown)


def _is_of_results(session: Session, analysis: Analysis) -> bool:
    """Whether an analysis reads results of experiments, and this recording has them."""
    return bool(set(_TABLES) & set(analysis.needs)) and not session.missing(analysis)


SECTION = Section(
    about="experiment",
    order=60,
    needs=("experiment_cases",),
    title=fact("sections/experiment"),
    coverage=_coverage,
    statement=_statement,
    instead="`sysdock diagnose REC` says what shows its results",
)
