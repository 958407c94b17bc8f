"""Step 2, load at the time of the job: what counters and samples say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from sysdock.checkup import FINDING, OK, UNKNOWN
from sysdock.checkup.counters import difference, read_llite, read_nfs, read_proc_io
from sysdock.checkup.statement import Name, Part
from sysdock.checkup.sysstat import read_sysstat

# Over TCP a healthy client hardly ever sends again.
MOST_RETRANS = 0.01
# Requests of this size cost more in overhead than in data.
SMALL_BYTES = 4096
SMALL_REMOTE_BYTES = 65536
MANY = 1000
BUSY_PERCENT = 80
_MOST_NAMED = 3
_NFS_DATA = ("read", "write", "commit")
_LLITE_METADATA = (
    "open", "close", "getattr", "setattr", "create", "link", "unlink", "symlink", "mkdir", "rmdir", "mknod",
    "rename", "statfs", "readdir", "getxattr", "setxattr", "listxattr", "removexattr", "inode_permission",
    "alloc_inode",
)  # fmt: skip


def no_load() -> Part:
    """The load where nothing was given."""
    return Part(
        "load",
        UNKNOWN,
        (
            "How busy servers and disks were at the time of the job is not known.",
            "ジョブの実行時にサーバーやディスクがどれだけ混んでいたかは不明です。",
        ),
        (
            "Give counters from before and after the job (--nfsstat BEFORE AFTER, --llite BEFORE AFTER), "
            "/proc/PID/io (--proc-io FILE) or sysstat's samples (--sar FILE).",
            "ジョブ前後のカウンター (--nfsstat BEFORE AFTER、--llite BEFORE AFTER)、"
            "/proc/PID/io (--proc-io FILE)、sysstat の記録 (--sar FILE) を与えてください。",
        ),
    )


def judge_nfs(before: Path, after: Path) -> Part:
    """Calls of an NFS client between two snapshots."""
    first, last = read_nfs(before), read_nfs(after)
    place = str(after)
    rpc = difference(
        {"calls": first.calls, "retrans": first.retrans},
        {"calls": last.calls, "retrans": last.retrans},
        place,
    )
    procedures = difference(first.procedures, last.procedures, place)
    most = sorted((name for name in procedures if procedures[name]), key=lambda name: -procedures[name])
    total = sum(procedures.values())
    data = sum(count for name, count in procedures.items() if name.split()[-1] in _NFS_DATA)
    values = {
        "calls": rpc["calls"],
        "retrans": rpc["retrans"],
        "share": f"{rpc['retrans'] / rpc['calls']:.2%}" if rpc["calls"] else None,
        "metadata": f"{1 - data / total:.0%}" if total else None,
        "most": [f"{name} {procedures[name]:,}" for name in most[:_MOST_NAMED]],
    }
    if not rpc["calls"]:
        said = ("NFS: no call between the two snapshots.", "NFS: 2 つの記録の間に呼び出しがありません。")
        return Part("nfs", UNKNOWN, said, _AROUND_JOB, values)
    said = (
        "NFS: {calls:n} calls, {retrans:n} sent again ({share}); most: {most}; {metadata} of them are about "
        "metadata. All programs of the machine are counted.",
        "NFS: 呼び出し {calls:n} 回、再送 {retrans:n} 回 ({share})。多いもの: {most}。"
        "メタデータの割合 {metadata}。この計算機のすべてのプログラムの合計です。",
    )
    if rpc["retrans"] > MOST_RETRANS * rpc["calls"]:
        do = (
            "The server or the network did not answer in time: give the administrator the time of the job.",
            "サーバーかネットワークが時間内に応答していません。ジョブの時刻を管理者に伝えてください。",
        )
        return Part("nfs", FINDING, said, do, values)
    return Part("nfs", OK, said, None, values)


_AROUND_JOB = (
    "Take one snapshot before the job and one after it, on the machine where it runs.",
    "ジョブが動く計算機で、ジョブの前と後に記録してください。",
)


def judge_llite(before: Path, after: Path) -> Part:
    """Operations of a Lustre client between two snapshots."""
    first, last = read_llite(before), read_llite(after)
    samples = difference(first.samples, last.samples, str(after))
    sums = difference(first.sums, last.sums, str(after))
    requests = samples.get("read_bytes", 0) + samples.get("write_bytes", 0)
    moved = sums.get("read_bytes", 0) + sums.get("write_bytes", 0)
    metadata = sum(samples.get(name, 0) for name in _LLITE_METADATA)
    values = {
        "requests": requests,
        "bytes": moved,
        "size": moved / requests if requests else None,
        "metadata": metadata,
        "read_bytes": sums.get("read_bytes", 0),
        "written_bytes": sums.get("write_bytes", 0),
    }
    if not requests and not metadata:
        said = (
            "Lustre: nothing was counted between the two snapshots.",
            "Lustre: 2 つの記録の間に何も数えられていません。",
        )
        return Part("llite", UNKNOWN, said, _AROUND_JOB, values)
    said = (
        "Lustre: {requests:n} reads and writes of {size:B} on average ({read_bytes:B} read, "
        "{written_bytes:B} written), {metadata:n} metadata operations.",
        "Lustre: 読み書き {requests:n} 回、平均 {size:B} (読み {read_bytes:B}、書き {written_bytes:B})、"
        "メタデータ操作 {metadata:n} 回。",
    )
    if requests > MANY and moved < SMALL_REMOTE_BYTES * requests:
        do = (
            "Move more of it at a time: a parallel file system wants requests of 1 MiB and more.",
            "一度にもっと多く読み書きしてください。並列ファイルシステムには 1 MiB 以上の要求が向きます。",
        )
        return Part("llite", FINDING, said, do, values)
    if metadata > max(requests, MANY):
        do = (
            "More operations on metadata than on data: open files once, and put small files into one.",
            "データよりメタデータの操作が多くなっています。"
            "ファイルを開くのは一度にし、小さなファイルはまとめてください。",
        )
        return Part("llite", FINDING, said, do, values)
    return Part("llite", OK, said, None, values)


def judge_proc_io(counters: dict[str, int] | Path) -> Part:
    """What one process asked for, and what of it reached a disk."""
    found = read_proc_io(counters) if isinstance(counters, Path) else counters
    calls = found["syscr"] + found["syscw"]
    moved = found["rchar"] + found["wchar"]
    values = {**found, "calls": calls, "size": moved / calls if calls else None}
    if not calls:
        said = ("/proc/PID/io: nothing was read or written.", "/proc/PID/io: 読み書きがありません。")
        return Part("proc_io", UNKNOWN, said, None, values)
    said = (
        "/proc/PID/io: {rchar:B} read and {wchar:B} written in {calls:n} calls of {size:B} on average; "
        "{read_bytes:B} came from disks, {write_bytes:B} are for disks.",
        "/proc/PID/io: 読み {rchar:B}、書き {wchar:B}、呼び出し {calls:n} 回、平均 {size:B}。"
        "ディスクからの読み {read_bytes:B}、ディスクへの書き {write_bytes:B}。",
    )
    if calls > MANY and moved < SMALL_BYTES * calls:
        do = (
            "Small requests: use buffered files, and move 64 KiB or more at a time.",
            "要求が小さすぎます。バッファー付きのファイルを使い、一度に 64 KiB 以上読み書きしてください。",
        )
        return Part("proc_io", FINDING, said, do, values)
    return Part("proc_io", OK, said, None, values)


def judge_sar(path: Path, during: tuple[float, float] | None) -> Part:
    """Load of disks by sysstat; `during` is the time of the job (s since the epoch), where it is known."""
    samples = read_sysstat(path)
    dated = [sample for sample in samples if sample.at is not None]
    if during and len(dated) == len(samples):
        # A sample stands for the interval that ends with it.
        ends = sorted({sample.at for sample in dated if sample.at is not None})
        step = min((b - a for a, b in pairwise(ends)), default=600)
        samples = [s for s in dated if s.at is not None and during[0] <= s.at <= during[1] + step]
        span = ("during the job", "ジョブの間")
    else:
        span = ("in the whole file", "ファイル全体")
    if not samples:
        said = (
            "sysstat: no sample falls into the time of the job.",
            "sysstat: ジョブの時間内の記録がありません。",
        )
        do = ("Give the file of that day.", "その日のファイルを与えてください。")
        return Part("sar", UNKNOWN, said, do)
    values = {"samples": len(samples), "span": span[0], "span_ja": span[1]}
    measured = [sample for sample in samples if sample.busy is not None]
    if not measured:
        values |= {
            "read": _mean([sample.read_bytes_s for sample in samples]),
            "written": _mean([sample.written_bytes_s for sample in samples]),
        }
        said = (
            "sysstat: {samples} samples {span}: {read:B/s} read, {written:B/s} written; how busy the disks "
            "were is not in them.",
            "sysstat: {span_ja}の {samples} 点: 読み {read:B/s}、書き {written:B/s}。"
            "ディスクの混み具合は含まれていません。",
        )
        do = (
            "Give `sar -d` or `sadf -j FILE -- -d` as well.",
            "`sar -d` か `sadf -j FILE -- -d` も与えてください。",
        )
        return Part("sar", UNKNOWN, said, do, values)
    devices = sorted({sample.device or "" for sample in measured})
    by_device = {name: [s for s in measured if s.device == name] for name in devices}
    busiest = max(devices, key=lambda name: _mean([s.busy or 0 for s in by_device[name]]))
    own = by_device[busiest]
    mean = _mean([sample.busy or 0 for sample in own])
    values |= {
        "device": Name("word", busiest),
        "samples": len(own),
        "busy": round(mean, 1),
        "busiest": max(sample.busy or 0 for sample in own),
        "await": round(_mean([sample.await_ms or 0 for sample in own]), 2),
        "read": _mean([sample.read_bytes_s for sample in own]),
        "written": _mean([sample.written_bytes_s for sample in own]),
    }
    said = (
        "sysstat: the busiest disk is {device}: busy {busy} % of the time on average, {busiest} % at most, "
        "{await} ms a request, {read:B/s} read, {written:B/s} written ({samples} samples {span}).",
        "sysstat: 最も混んでいたディスクは {device}: 平均 {busy} %、最大 {busiest} %、1 要求 {await} ms、"
        "読み {read:B/s}、書き {written:B/s} ({span_ja}の {samples} 点)。",
    )
    if mean >= BUSY_PERCENT:
        do = (
            "The disk was at its limit, by this job or by others: ask the administrator what else ran.",
            "ディスクは限界でした。このジョブのためか、ほかのジョブのためかを管理者に尋ねてください。",
        )
        return Part("sar", FINDING, said, do, values)
    return Part("sar", OK, said, None, values)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
