"""Counters of a file system as snapshots: NFS clients, Lustre clients, /proc/PID/io."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sysdock.checkup.text_file import read_text
from sysdock.errors import UserError


def _words(text: str) -> list[str]:
    return text.split()


# The order of the counters in /proc/net/rpc/nfs is that of the procedures in RFC 1813 and of the kernel's
# fs/nfs/nfs4xdr.c; the file has no names.
NFS3 = _words("""
    null getattr setattr lookup access readlink read write create mkdir symlink mknod remove rmdir rename
    link readdir readdirplus fsstat fsinfo pathconf commit
""")
NFS4 = _words("""
    null read write commit open open_conf open_noat open_dgrd close setattr fsinfo renew setclntid confirm
    lock lockt locku access getattr lookup lookup_root remove rename link symlink create pathconf statfs
    readlink readdir server_caps delegreturn getacl setacl fs_locations rel_lkowner secinfo fsid_present
    exchange_id create_session destroy_session sequence get_lease_time reclaim_comp layoutget getdevinfo
    layoutcommit layoutreturn secinfo_no test_stateid free_stateid getdevicelist bind_conn_to_ses
    destroy_clientid seek allocate deallocate layoutstats clone
""")
_NFS_HINT = "give the output of `nfsstat -c`, or a copy of /proc/net/rpc/nfs, before and after the job"
_LLITE_HINT = "give the output of `lctl get_param llite.*.stats` before and after the job"
_IO_HINT = "give a copy of /proc/PID/io, made near the end of the process"
_IO_KEYS = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes")
# Greatest value of a column of counts, and limit of its number of digits.
_MOST, _MOST_DIGITS = (1 << 63) - 1, 20


@dataclass(frozen=True)
class NfsCounters:
    """RPC calls and retransmissions, and calls by version and procedure (`v4 read`)."""

    calls: int
    retrans: int
    procedures: dict[str, int]


@dataclass(frozen=True)
class LliteCounters:
    """Samples by counter name, and for those in bytes their sum."""

    samples: dict[str, int]
    sums: dict[str, int] = field(default_factory=dict)


def _counts(words: Sequence[str], hint: str, place: str) -> list[int]:
    """Counters as the kernel prints them; a UserError where one is no number, or none that a table holds."""
    # Python refuses to read thousands of digits.
    if not all(word.isdecimal() and len(word) <= _MOST_DIGITS for word in words):
        raise UserError("not a line of counters", hint, place)
    counts = list(map(int, words))
    if any(count > _MOST for count in counts):
        raise UserError("a counter has more than 63 bits", hint, place)
    return counts


def read_nfs(path: Path) -> NfsCounters:
    """A snapshot of an NFS client."""
    text = read_text(path, "counters of an NFS client")
    return _rpc_nfs(text, path) if re.match(r"net \d|rpc \d", text) else _nfsstat(text, path)


def _rpc_nfs(text: str, path: Path) -> NfsCounters:
    calls = retrans = None
    procedures = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, *fields = line.split() or [""]
        counts = _counts(fields, _NFS_HINT, f"{path}:{number}")
        if name == "rpc" and len(counts) >= 2:
            calls, retrans = counts[:2]
        elif name in ("proc2", "proc3", "proc4"):
            names = {"proc3": NFS3, "proc4": NFS4}.get(name, [])
            for place, count in enumerate(counts[1:]):
                procedure = names[place] if place < len(names) else f"procedure {place}"
                procedures[f"v{name[-1]} {procedure}"] = count
    if calls is None or retrans is None:
        raise UserError("no line `rpc` with the number of calls", _NFS_HINT, str(path))
    return NfsCounters(calls, retrans, procedures)


def _nfsstat(text: str, path: Path) -> NfsCounters:
    """`nfsstat -c`: a line of names, and below it a line of counts with their percentages."""
    found: dict[str, int] = {}
    section = ""
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.fullmatch(r"Client (rpc) stats:|Client nfs (v\d):?", line.strip()):
            section = heading[1] or heading[2]
        elif line.startswith("Server"):
            section = ""
        elif section and re.match(r"[a-z]", line):
            names = line.split()
        elif section and line.strip():
            # Percentages are no counts. A match begins at the first digit only: else a long row takes
            # quadratic time.
            words = re.findall(r"(?<!\d)\d+(?![\d%])", line)
            counts = _counts(words, _NFS_HINT, f"{path}:{number}")
            if len(counts) != len(names):
                raise UserError(
                    f"{len(counts)} counts below {len(names)} names", _NFS_HINT, f"{path}:{number}"
                )
            found |= {f"{section} {name}": count for name, count in zip(names, counts, strict=True)}
    if "rpc calls" not in found or "rpc retrans" not in found:
        raise UserError("no counters of an NFS client in it", _NFS_HINT, str(path))
    procedures = {name: count for name, count in found.items() if not name.startswith("rpc ")}
    return NfsCounters(found["rpc calls"], found["rpc retrans"], procedures)


def read_llite(path: Path) -> LliteCounters:
    """A snapshot of Lustre clients; those of several file systems are added."""
    samples: dict[str, int] = {}
    sums: dict[str, int] = {}
    for number, line in enumerate(read_text(path, "counters of a Lustre client").splitlines(), 1):
        if not line.strip() or re.match(r"(llite\..*stats=|snapshot_time|start_time|elapsed_time)", line):
            continue
        found = re.fullmatch(r"(\w+)\s+(\d+) samples \[(\w+)\](?: (\d+) (\d+) (\d+)(?: \d+)?)?\s*", line)
        if not found:
            raise UserError("not a counter of a Lustre client", _LLITE_HINT, f"{path}:{number}")
        has_sum = found[6] and found[3] == "bytes"
        counts = _counts([found[2], found[6]] if has_sum else [found[2]], _LLITE_HINT, f"{path}:{number}")
        for counters, count in zip((samples, sums), counts, strict=False):
            counters[found[1]] = min(counters.get(found[1], 0) + count, _MOST)
    if not samples:
        raise UserError("no counters of a Lustre client in it", _LLITE_HINT, str(path))
    return LliteCounters(samples, sums)


def read_proc_io(path: Path) -> dict[str, int]:
    """The counters of one process."""
    return parse_proc_io(read_text(path, "a copy of /proc/PID/io"), str(path))


def parse_proc_io(text: str, place: str) -> dict[str, int]:
    """The lines of /proc/PID/io."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(": ")
        if not colon:
            raise UserError("not a line of /proc/PID/io", _IO_HINT, f"{place}:{number}")
        [found[name]] = _counts([value.strip()], _IO_HINT, f"{place}:{number}")
    missing = [key for key in _IO_KEYS if key not in found]
    if missing:
        raise UserError(f"no `{missing[0]}` in it", _IO_HINT, place)
    return found


def difference(before: dict[str, int], after: dict[str, int], place: str) -> dict[str, int]:
    """The difference between two snapshots. UserError: a counter ran back."""
    found = {name: count - before.get(name, 0) for name, count in after.items()}
    back = [name for name, count in found.items() if count < 0] + [n for n in before if n not in after]
    if back:
        hint = (
            "give the snapshot before the job first; a reboot or a mount in between starts the counters anew"
        )
        raise UserError(f"`{back[0]}` is smaller than before", hint, place)
    return found
