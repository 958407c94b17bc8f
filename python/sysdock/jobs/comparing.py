"""A job against its earlier runs, or against another job: what changed, and how sure that is.

Runs of a job differ from each other anyway. So each number is compared with how far other runs of the same
job are from each other: of `of` such distances, `as_far` are at least as large. If nothing had changed, the
new one would have such a place among them by a chance of `chance`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.text import human_bytes, human_count, human_ns, printable

Totals = dict[str, Any]
Found = dict[str, Any]

_MOST_FILES = 5
# Files are averaged over at most this many runs.
_MOST_RUNS_OF_FILES = 20
# Compared measures, with name and format.
_MEASURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "wall_ns": ("time", human_ns),
    "nodes": ("nodes", human_count),
    "bytes": ("transferred", human_bytes),
    "operations": ("calls on files", human_count),
    "metadata_operations": ("of them metadata", human_count),
    "errors": ("of them failed", human_count),
    "io_wait_ns": ("waited for files", human_ns),
    "wait_per_call_ns": ("waited per call", human_ns),
    "cpu_ns": ("CPU time", human_ns),
    "memory_bytes": ("memory", human_bytes),
}
# Probability that at least one number of a comparison is called changed by chance.
_ALPHA = 0.05
_HINT = "choose the time by --at and --last; `sysdock jobs history` and `top` list jobs"


def compare_jobs(session: Session, job: str, other: str | None = None) -> Found:
    """`job` against `other`, or against its earlier runs: those of the same user and name.

    `measures`: for each number its `value`, what it is compared with (`reference`: that of `other`, else the
    median of the earlier runs), and how sure a change is. UserError: no record of a job, or no earlier run.
    """
    new = _record(session, job)
    runs = _runs_like(session, new)
    if other is None:
        old = [run for run in runs if run["begun_s"] < new["begun_s"]]
        if not old:
            fact = f"job {job}: no earlier run of {_name(new)} in this time was counted completely"
            raise UserError(fact, "name the job to compare it with, or look further back: --last 365d")
        measures = {name: _against_runs(name, new, old) for name in _MEASURES}
        against: Found = {"runs": len(old), "jobs": [run["job_id"] for run in old]}
    else:
        reference = _record(session, other)
        others = [run for run in runs if run["job_id"] != other]
        measures = {name: _against_one(name, new, reference, others) for name in _MEASURES}
        against = {"job_id": other, "runs": len(others)}
    found = {name: measure for name, measure in measures.items() if measure}
    for measure in found.values():
        chance = measure["chance"]
        measure["is_change"] = None if chance is None else chance * len(found) <= _ALPHA
    compared = [other] if other is not None else against["jobs"][-_MOST_RUNS_OF_FILES:]
    return {"job": new, "against": against, "measures": found, "files": _files(session, job, compared)}


def _record(session: Session, job: str) -> Totals:
    rows = session.run("jobs/totals", {"job": job}).dicts()
    if not rows:
        raise UserError(f"job {job}: the lake has no record of it; it has one when it has ended", _HINT)
    return _with_rates(rows[0])


def _with_rates(row: Totals) -> Totals:
    return {**row, "wait_per_call_ns": row["io_wait_ns"] / row["operations"] if row["operations"] else None}


def _runs_like(session: Session, job: Totals) -> list[Totals]:
    """Other runs of the same job, oldest first: by user and name, or first program if it has none."""
    rows = session.run("jobs/totals", {"user": job["user"] or "", "name": job["name"] or ""}).dicts()
    same = ("user", "name") if job["name"] else ("user", "name", "command")
    runs = [
        _with_rates(row)
        for row in rows
        if row["is_whole"] and row["job_id"] != job["job_id"] and all(row[key] == job[key] for key in same)
    ]
    return sorted(runs, key=lambda run: (run["begun_s"], run["job_id"]))


def _against_runs(name: str, new: Totals, old: Sequence[Totals]) -> Found | None:
    """Distance from the median of the earlier runs, and theirs from the median of the others."""
    values = [run[name] for run in old if run[name] is not None]
    if new[name] is None or not values:
        return None
    median = statistics.median(values)
    distances = [
        _distance(value, statistics.median(values[:place] + values[place + 1 :]))
        for place, value in enumerate(values)
        if len(values) > 1
    ]
    return _measure(new[name], median, distances)


def _against_one(name: str, new: Totals, old: Totals, others: Sequence[Totals]) -> Found | None:
    """Distance of two runs, and that of other pairs of runs; each run is in one pair."""
    if new[name] is None or old[name] is None:
        return None
    values = [run[name] for run in others if run[name] is not None]
    distances = [_distance(*pair) for pair in zip(values[::2], values[1::2], strict=False)]
    return _measure(new[name], old[name], distances)


def _measure(value: float, reference: float, distances: Sequence[float]) -> Found:
    as_far = sum(distance >= _distance(value, reference) for distance in distances)
    return {
        "value": value,
        "reference": reference,
        "ratio": round(value / reference, 4) if reference else None,
        "as_far": as_far,
        "of": len(distances),
        "chance": round((as_far + 1) / (len(distances) + 1), 4) if distances else None,
    }


def _distance(value: float, reference: float) -> float:
    """Logarithm of the ratio of two values; infinite if the reference is 0."""
    if value == reference:
        return 0.0
    if value <= 0 or reference <= 0:
        return math.inf
    return abs(math.log(value / reference))


def _files(session: Session, job: str, compared: Sequence[str]) -> list[Found]:
    """Files of either side that took most time: on average of the runs that it is compared with."""
    if "job_files" not in session.recording.tables:
        return []
    before: dict[str, float] = {}
    for other in compared:
        for row in session.run("jobs/files", {"job": other}).dicts():
            before[row["path"]] = before.get(row["path"], 0) + row["io_time_ns"] / len(compared)
    now = {row["path"]: row["io_time_ns"] for row in session.run("jobs/files", {"job": job}).dicts()}
    rows = [
        {"path": path, "io_time_ns": now.get(path), "reference_ns": before.get(path)}
        for path in now.keys() | before.keys()
    ]

    def change(row: Found) -> tuple[float, str]:
        return (-abs((row["io_time_ns"] or 0) - (row["reference_ns"] or 0)), row["path"] or "")

    return sorted(rows, key=change)[:_MOST_FILES]


def _name(job: Totals) -> str:
    return f"{printable(job['name'] or job['command'] or '?')} of {printable(job['user'] or '?')}"


HEADS = ("files whose time changed most",)


def lines_of(found: Found) -> list[str]:
    """The comparison as text."""
    job, against = found["job"], found["against"]
    other = against.get("job_id")
    reference = f"job {printable(other)}" if other else f"median of {against['runs']} earlier runs"
    lines = [f"job {printable(job['job_id'])}, {_name(job)}, against {reference}", ""]
    if not job["is_whole"]:
        lines += ["agents did not count all of this job: its numbers are too small", ""]
    head = f"{'this job':>11} {'reference':>11} {'ratio':>7}  {'as far':>11}"
    lines.append(f"  {'':<18}{head}")
    for name, measure in found["measures"].items():
        label, written = _MEASURES[name]
        ratio = "-" if measure["ratio"] is None else f"{measure['ratio']:.2f}"
        far = f"{measure['as_far']} of {measure['of']}" if measure["of"] else "not known"
        numbers = f"{written(measure['value']):>11} {written(measure['reference']):>11} {ratio:>7}  {far:>11}"
        lines.append(f"  {label:<18}{numbers}{'  changed' if measure['is_change'] else ''}")
    what = "pairs of other runs" if other else "earlier runs"
    lines += ["", f"  as far: {what} that differ at least as much"]
    lines.append("  changed: fewer than one comparison in 20 would show such a number by chance")
    if found["files"]:
        lines += ["", f"  {HEADS[0]}", f"  {'this job':>11} {'reference':>11}  file"]
    for file in found["files"]:
        times = [human_ns(time) if time else "-" for time in (file["io_time_ns"], file["reference_ns"])]
        lines.append(f"  {times[0]:>11} {times[1]:>11}  {printable(file['path'] or '?')}")
    return lines
