"""Ranks of a parallel job, in a recording of `sysdock merge`."""

from __future__ import annotations

from sysdock.sections.coverage import understood
from sysdock.sections.section import Section

SECTION = Section(
    about="ranks",
    order=3,
    question="ranks/by_rank",
    needs=("ranks",),
    title=("ranks of a parallel job", "並列ジョブのランク"),
    coverage=understood,
)
