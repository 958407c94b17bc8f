"""A site's threshold for the ratio of step 1, from a year of accounting files and tables of jobs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sysdock.checkup import accounting, histogram
from sysdock.checkup.histogram import BINS, Histogram, Split
from sysdock.checkup.job_table import read_jobs
from sysdock.checkup.text_file import open_packed
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.sentences import Words, fact

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def usual_threshold() -> float:
    """The threshold of the rule of step 1, used if a site has none."""
    rule = Library().rule("checkup/io_ratio")
    return float(next(param.default for param in rule.params if param.name == "threshold"))


@dataclass
class Survey:
    """The result of the records: the histogram, the number left out, and the time that they cover (s,
    epoch).
    """

    histogram: Histogram = field(default_factory=Histogram)
    short: int = 0
    without: int = 0
    first: float | None = None
    last: float | None = None

    def cover(self, first: float, last: float) -> None:
        """Widens the period."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


@dataclass(frozen=True)
class Threshold:
    """The value, whether it was `computed` or is the `default`, and why."""

    value: float
    method: str
    reason: Words
    split: Split | None


def survey(
    files: Sequence[Path],
    min_real_s: float = 1.0,
    without: Collection[str] = (),
    on_file: Callable[[Path], None] | None = None,
) -> Survey:
    """Reads all records; those shorter than `min_real_s`, and of the programs `without`, are left out."""
    found = Survey()
    for path in files:
        if on_file:
            on_file(path)
        with open_packed(path) as file:
            try:
                head = file.read(2)
            except (OSError, EOFError, zlib.error) as error:
                raise UserError(f"cannot be read: {str(error).lower()}", place=str(path)) from None
        if accounting.is_accounting(head):
            _add_processes(found, path, min_real_s, without)
        else:
            _add_jobs(found, path, min_real_s, without)
    return found


def _add_processes(found: Survey, path: Path, min_real_s: float, without: Collection[str]) -> None:
    """Processes of an accounting file. It is the innermost loop for millions of records: no calls in it."""
    left_out = {name.encode().ljust(16, b"\0")[:16] for name in without}
    ticks = accounting.TICKS_PER_S
    shortest, longest = min_real_s * ticks, accounting.LONGEST_TICKS
    weights, records, short, excluded = found.histogram.weights, 0, 0, 0
    lowest, width = histogram.LOWEST, histogram.WIDTH
    first, last = math.inf, -math.inf
    log10, floor = math.log10, 1e-6
    for _pid, _ppid, began, real, user, _system, comm in accounting.rows(path):
        if began < first:
            first = began
        if began > last:
            last = began
        if not 0 < real < longest or real < shortest:
            accounting.refuse_time(real, path)
            short += 1
        elif left_out and comm in left_out:
            excluded += 1
        else:
            records += 1
            ratio = user / real
            place = int((log10(ratio) - lowest) / width) if ratio > floor else 0
            weights[place if place < BINS else -1] += real / ticks
    found.histogram.records += records
    found.short += short
    found.without += excluded
    if last >= first:
        found.cover(first, last)


def _add_jobs(found: Survey, path: Path, min_real_s: float, without: Collection[str]) -> None:
    for job in read_jobs(path):
        if job.ended is not None:
            found.cover(job.ended, job.ended)
        real = float(job.real)
        if real < min_real_s or real <= 0:
            found.short += 1
        elif job.job in without:
            found.without += 1
        else:
            computing = (job.cores or 1) - job.assistant_cores
            found.histogram.add(float(job.user) / computing / real, real * (job.cores or 1))


def decide(found: Survey) -> Threshold:
    """Otsu's split where there are really two classes, else 0.1 with the reason."""
    records = found.histogram.records
    split = found.histogram.split()
    if records < histogram.LEAST_RECORDS:
        return _default(
            split,
            fact("checkup/records_too_few_needed", records=records, least=histogram.LEAST_RECORDS),
        )
    if split is None:
        return _default(None, fact("checkup/all_jobs_have_same"))
    if split.separation < histogram.LEAST_SEPARATION:
        return _default(
            split,
            fact(
                "checkup/there_no_two_classes", separation=split.separation, least=histogram.LEAST_SEPARATION
            ),
        )
    if min(split.shares) < histogram.LEAST_SHARE:
        return _default(
            split,
            fact("checkup/smaller_class_has_only", share=min(split.shares), least=histogram.LEAST_SHARE),
        )
    if split.valley > histogram.DEEPEST_VALLEY:
        return _default(
            split,
            fact("checkup/there_no_valley_between", valley=split.valley, most=histogram.DEEPEST_VALLEY),
        )
    return Threshold(
        float(f"{split.threshold:.3g}"),
        "computed",
        fact(
            "checkup/two_classes_near_separation",
            low=split.typical[0],
            high=split.typical[1],
            separation=split.separation,
            low_share=split.shares[0],
            high_share=split.shares[1],
        ),
        split,
    )


def _default(split: Split | None, reason: Words) -> Threshold:
    return Threshold(usual_threshold(), "default", reason, split)
