"""Ranks of a parallel job, in a recording of `sysdock merge`."""

from __future__ import annotations

from sysdock.sections.coverage import understood
from sysdock.sections.section import Section
from sysdock.sentences import fact

SECTION = Section(
    about="ranks",
    order=3,
    question="ranks/by_rank",
    needs=("ranks",),
    title=fact("sections/ranks_parallel_job"),
    coverage=understood,
)
