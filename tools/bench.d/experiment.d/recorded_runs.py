"""Long series of runs of one command, as the engine measures them; kept in a folder, so that they can be judged again."""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goals import Progress
from interference import PATTERNS, interference
from sysdock.experiment.one_run import measure, metrics_of

_TIMEOUT_S = 60.0
# Short ones, as many runs are needed: each takes 3 to 8 ms alone.
WORKLOADS: dict[str, tuple[str, ...]] = {
    "CPU": ("perl", "-e", "for ($i = 0; $i < 100000; $i++) {}"),
    "file write, fsync": ("dd", "if=/dev/zero", "of={folder}/file", "bs=64k", "count=8", "conv=fsync"),
    "process starts": ("sh", "-c", "for n in 1 2 3 4 5 6 7 8; do /bin/true; done"),
    "memory": ("dd", "if=/dev/zero", "of=/dev/null", "bs=8M", "count=4"),
}
METRICS = ("elapsed_s", "cpu_s")
# The first runs fill caches.
_DRY = 20


@dataclass(frozen=True)
class Series:
    """Consecutive runs of a workload under one pattern: the values of each metric. `load`: load of the machine, before and after."""

    workload: str
    pattern: str
    load: tuple[float, float]
    values: dict[str, list[float]]

    @property
    def count(self) -> int:
        """How many runs."""
        return len(next(iter(self.values.values())))

    def variation(self, metric: str) -> float:
        """Coefficient of variation of its runs."""
        return statistics.stdev(self.values[metric]) / statistics.fmean(self.values[metric])


def all_series(count: int, keep: Path | None, folder: Path, progress: Progress) -> Iterator[Series]:
    """A series of each workload under each pattern, taken from `keep` if it is there; `folder` is to work in."""
    for pattern in PATTERNS:
        for workload in WORKLOADS:
            yield series_of(workload, pattern, count, keep, folder, progress)


def series_of(
    workload: str, pattern: str, count: int, keep: Path | None, folder: Path, progress: Progress
) -> Series:
    """The one that is kept, or a new one of `count` runs."""
    if keep and (file := _file(keep, workload, pattern, count)).exists():
        read = json.loads(file.read_text())
        return Series(read["workload"], read["pattern"], tuple(read["load"]), read["values"])
    with interference(pattern, folder):
        series = _collected(workload, pattern, count, folder, progress)
    if keep:
        kept(series, keep)
    return series


def kept(series: Series, keep: Path) -> None:
    """Writes it where `series_of` finds it."""
    keep.mkdir(parents=True, exist_ok=True)
    _file(keep, series.workload, series.pattern, series.count).write_text(json.dumps(series.__dict__))


def _file(keep: Path, workload: str, pattern: str, count: int) -> Path:
    words = re.findall(r"\w+", f"{workload} {pattern}")
    return keep / f"{'-'.join(words)}-{count}.json"


def _collected(workload: str, pattern: str, count: int, folder: Path, progress: Progress) -> Series:
    words = [word.replace("{folder}", str(folder)) for word in WORKLOADS[workload]]
    before = os.getloadavg()[0]
    values: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for number in range(_DRY + count):
        metrics = metrics_of(measure(words, folder, timeout_s=_TIMEOUT_S))
        if number >= _DRY:
            for metric in METRICS:
                values[metric].append(metrics[metric])
            progress(f"{workload}, {pattern}: run {number + 1 - _DRY:,} of {count:,}")
    return Series(workload, pattern, (before, os.getloadavg()[0]), values)
