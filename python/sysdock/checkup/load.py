"""Step 2, load at the time of the job: counters and samples as tables, and what the rules say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.checkup import UNKNOWN
from sysdock.checkup.answers import Question, answers
from sysdock.checkup.counters import difference, read_llite, read_nfs, read_proc_io
from sysdock.checkup.statement import Part
from sysdock.checkup.sysstat import read_sysstat
from sysdock.sentences import fact

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.checkup.user_input import Given

COUNTERS, LOADS = "io_counters", "device_loads"
Row = dict[str, Any]
# Start and end, ns since the epoch.
Period = tuple[int, int]
_NFS = Question("nfs", "checkup/nfs_retransmissions")
_LUSTRE = (
    Question("llite", "checkup/lustre_small_requests", columns={"value": "size"}),
    Question("llite", "checkup/lustre_metadata"),
)
_PROCESS = Question("proc_io", "checkup/process_small_requests", columns={"value": "size"})
_DISK = Question(
    "sar",
    "checkup/busy_disk",
    columns={"subject": "device", "value": "busy"},
    names={"subject": "word"},
)
_CALLS_OF_PROC_IO = ("syscr", "syscw")
_NS = 1_000_000_000
_NS_PER_MS = 1_000_000


def no_load() -> Part:
    """The load where nothing was given."""
    return Part(
        "load",
        UNKNOWN,
        fact("checkup/how_busy_servers_disks"),
        fact("checkup/give_counters_from_before"),
    )


def load_tables(given: Given) -> dict[str, list[Row]]:
    """Rows of `io_counters` and `device_loads`, of those for which something was given."""
    counters = [
        *(_nfs_rows(*given.nfsstat) if given.nfsstat else ()),
        *(_lustre_rows(*given.llite) if given.llite else ()),
        *(_process_rows(1, read_proc_io(given.proc_io)) if given.proc_io else ()),
        *(_process_rows(2, given.run.io) if given.run and given.run.io is not None else ()),
    ]
    loads = [row for number, path in enumerate(given.sar, 1) for row in _device_rows(number, path)]
    return {name: rows for name, rows in ((COUNTERS, counters), (LOADS, loads)) if rows}


def load_parts(session: Session, given: Given, during: Period | None) -> list[Part]:
    """Answers of the rules about the tables in `session`; `during`: the time of the job, if known."""
    asked = [_NFS] if given.nfsstat else []
    asked += _LUSTRE if given.llite else ()
    asked += [_PROCESS] if given.proc_io or (given.run and given.run.io is not None) else []
    parts = [part for question in asked for part in answers(session, question)]
    if given.run and given.run.io is None:
        sentence = fact("checkup/proc_pid_io_could")
        parts.append(Part("proc_io", UNKNOWN, sentence, None, {"why": given.run.no_io}))
    if given.sar:
        period = {"from_ns": during[0], "until_ns": during[1]} if during else None
        parts += answers(session, _DISK, period)
    return parts


def _nfs_rows(before: Path, after: Path) -> Iterable[Row]:
    """Calls of an NFS client between two snapshots."""
    first, last = read_nfs(before), read_nfs(after)
    place = str(after)
    rpc = difference(
        {"rpc calls": first.calls, "rpc retrans": first.retrans},
        {"rpc calls": last.calls, "rpc retrans": last.retrans},
        place,
    )
    procedures = difference(first.procedures, last.procedures, place)
    return (_counter(1, "nfs", name, operations=count) for name, count in (rpc | procedures).items())


def _lustre_rows(before: Path, after: Path) -> Iterable[Row]:
    """Operations of a Lustre client between two snapshots."""
    first, last = read_llite(before), read_llite(after)
    samples = difference(first.samples, last.samples, str(after))
    sums = difference(first.sums, last.sums, str(after))
    return (
        _counter(1, "llite", name, operations=count, transferred_bytes=sums.get(name))
        for name, count in samples.items()
    )


def _process_rows(number: int, counters: Mapping[str, int]) -> Iterable[Row]:
    """Rows of one process: what it requested, and what of it reached a disk."""
    return (
        _counter(number, "proc_io", name, operations=count)
        if name in _CALLS_OF_PROC_IO
        else _counter(number, "proc_io", name, transferred_bytes=count)
        for name, count in counters.items()
    )


def _counter(
    number: int,
    source: str,
    counter: str,
    *,
    operations: int | None = None,
    transferred_bytes: int | None = None,
) -> Row:
    return {
        "source_id": number,
        "source": source,
        "counter": counter,
        "operations": operations,
        "transferred_bytes": transferred_bytes,
    }


def _device_rows(number: int, path: Path) -> Iterable[Row]:
    return (
        {
            "file_id": number,
            "end_ts_ns": None if sample.at is None else round(sample.at * _NS),
            "device": sample.device,
            "read_bytes_per_second": sample.read_bytes_s,
            "written_bytes_per_second": sample.written_bytes_s,
            "wait_ns": None if sample.await_ms is None else round(sample.await_ms * _NS_PER_MS),
            "busy_percent": sample.busy,
        }
        for sample in read_sysstat(path)
    )
