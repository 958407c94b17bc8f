"""All that a lake has about one job."""

from __future__ import annotations

from typing import Any

from sysdock.analysis import Session
from sysdock.analysis.diagnosis import diagnose_by
from sysdock.errors import UserError
from sysdock.text import human_bytes, human_count, human_ns, printable, wrapped

_STEPS = 30
_INTERVAL_S = 10
_MOST_FILES = 10
_MOST_TARGETS = 8
_WIDTH = 100
HEADS = _FILES_HEAD, _STEPS_HEAD, _NODES_HEAD = (
    "files that took most time",
    "over time, in steps of",
    "its nodes, and servers for it, in that time; busiest: of all steps",
)

Found = dict[str, Any]


def about_job(session: Session, job: str, begin_ns: int, end_ns: int, step_s: int | None = None) -> Found:
    """Its totals, series and files between two times; a UserError if the lake has no data about it.

    `nodes`: what its nodes and servers did meanwhile, in the same steps. `findings`: of the rules about it.
    """
    found: Found = {"job_id": job, "totals": [], "findings": [], "series": [], "nodes": [], "files": []}
    held = session.recording.tables
    if "job_totals" in held:
        found["totals"] = session.run("jobs/totals", {"job": job}).dicts()
        found["findings"] = _findings(session, job) if found["totals"] else []
    if "job_samples" in held:
        sql = """SELECT min(ts_ns), max(ts_ns) FROM job_samples
            WHERE job_id = $job AND ts_ns > $begin_ns AND ts_ns <= $end_ns"""
        [(first_ns, last_ns)] = session.fetch(sql, {"job": job, "begin_ns": begin_ns, "end_ns": end_ns})
        if first_ns is not None:
            step_s = step_s or _step_s(first_ns, last_ns)
            params = {"job": job, "begin_ns": begin_ns, "end_ns": end_ns, "step_s": step_s}
            found["series"] = _over_time(session, "jobs/series", params)
            found["nodes"] = _over_time(session, "jobs/nodes", params)
            found["step_s"] = step_s
    if "job_files" in held:
        found["files"] = session.run("jobs/files", {"job": job}).dicts()
    if not found["totals"] and not found["series"]:
        hint = "choose the time by --at and --last; `sysdock jobs top` lists the jobs of a time"
        raise UserError(f"job {job}: the lake has no data of it in this time", hint)
    return found


def _over_time(session: Session, analysis: str, params: dict[str, Any]) -> list[Found]:
    """Rows of an analysis with Unix time in the place of seconds since the start of the recording."""
    started_ns = session.recording.started_ns
    rows = session.run(analysis, params).dicts()
    return [{"ts_ns": started_ns + round(row.pop("from_s") * 1e9), **row} for row in rows]


def _findings(session: Session, job: str) -> list[Found]:
    """Findings of the rules about jobs for this one."""
    rules = [rule for rule in session.library.rules() if any(param.name == "job" for param in rule.params)]
    found = [finding for rule in rules for finding in diagnose_by(session, rule, {"job": job})]
    keys = ("rule", "title", "reason", "certainty", "certainty_reason", "advice")
    said = [finding.in_language("en") for finding in found if finding.status == "finding"]
    return [{key: getattr(finding, key) for key in keys} for finding in said]


def _step_s(first_ns: int, last_ns: int) -> int:
    wanted = (last_ns - first_ns) / 1e9 / _STEPS
    return max(1, round(wanted / _INTERVAL_S)) * _INTERVAL_S


def lines_of(found: Found, columns: int | None = None) -> list[str]:
    """The result as text. `columns`: width of the terminal; at most 100 are used."""
    lines = [f"job {printable(found['job_id'])}"]
    for total in found["totals"]:
        name = printable(total["name"] or total["command"] or "")
        user, wall = printable(total["user"] or "?"), human_ns(total["wall_ns"])
        calls, failed = human_count(total["operations"]), human_count(total["errors"])
        metadata = human_count(total["metadata_operations"])
        lines += [
            f"  {name} of {user}: {wall} on {total['nodes']} nodes",
            f"  transferred {human_bytes(total['bytes'])} in {calls} calls on files, {metadata} of them"
            f" metadata, {failed} failed",
            f"  waited {human_ns(total['io_wait_ns'])} in them; CPU time {human_ns(total['cpu_ns'])},"
            f" memory {human_bytes(total['memory_bytes'])} at most",
        ]
        if not total["is_whole"]:
            lines.append("  agents did not count all of it: these numbers are too small")
    for finding in found["findings"]:
        lines += ["", *finding_lines(finding, columns)]
    if found["series"]:
        lines += ["", *_series_lines(found)]
    if found["nodes"]:
        lines += ["", *_node_lines(found)]
    if found["files"]:
        lines += [
            "",
            _FILES_HEAD,
            f"  {'time':>9} {'read':>9} {'written':>9} {'calls':>8}  file",
        ]
        for file in found["files"][:_MOST_FILES]:
            numbers = [
                human_ns(file["io_time_ns"]),
                human_bytes(file["read_bytes"]),
                human_bytes(file["written_bytes"]),
            ]
            calls = human_count(file["calls"])
            lines.append(
                "  " + " ".join(f"{n:>9}" for n in numbers) + f" {calls:>8}  {printable(file['path'] or '?')}"
            )
    return lines


def finding_lines(finding: Found, columns: int | None = None) -> list[str]:
    """A finding about a job for people: title, reason with how sure it is, and advice."""
    reason = finding["certainty_reason"]
    certainty = f" ({finding['certainty']}: {reason})" if reason else ""
    room = min(columns or _WIDTH, _WIDTH)
    return [
        f"  {printable(finding['title'])}",
        *wrapped(printable(finding["reason"] + certainty), room, "    "),
        *wrapped(printable(finding["advice"]), room, "    "),
    ]


def _node_lines(found: Found) -> list[str]:
    """Activity of its nodes and servers over all steps: devices, interfaces, network file systems."""
    sums: dict[tuple[str, str], Found] = {}
    for row in found["nodes"]:
        names = (row["counter_group"], row["target"])
        total = sums.setdefault(names, {"nodes": 0, "read": 0, "written": 0, "errors": 0, "busy": None})
        total["nodes"] = max(total["nodes"], row["nodes"])
        total["read"] += row["read_bytes"]
        total["written"] += row["written_bytes"]
        total["errors"] += row["errors"]
        if row["busy"] is not None:
            total["busy"] = max(total["busy"] or 0.0, row["busy"])
    most = sorted(sums.items(), key=lambda item: (-item[1]["read"] - item[1]["written"], item[0]))
    columns = f"{'nodes':>5} {'read':>9} {'written':>9} {'errors':>7} {'busiest':>8}"
    lines = [_NODES_HEAD, f"  {columns}  what"]
    for (group, target), total in most[:_MOST_TARGETS]:
        busy = "-" if total["busy"] is None else f"{total['busy']:.0%}"
        numbers = f"{total['nodes']:>5} {human_bytes(total['read']):>9} {human_bytes(total['written']):>9}"
        lines.append(f"  {numbers} {human_count(total['errors']):>7} {busy:>8}  {group} {printable(target)}")
    return lines


def _series_lines(found: Found) -> list[str]:
    import datetime

    names = f"{'read':>9} {'written':>9} {'calls':>8} {'metadata':>8} {'waited':>9} {'CPU':>9}"
    head = f"  {'from':<19} {names}  file system"
    lines = [f"{_STEPS_HEAD} {found['step_s']} s", head]
    for row in found["series"]:
        start = datetime.datetime.fromtimestamp(row["ts_ns"] / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        texts = [
            f"{human_bytes(row['read_bytes']):>9}",
            f"{human_bytes(row['written_bytes']):>9}",
            f"{human_count(row['operations']):>8}",
            f"{human_count(row['metadata_operations']):>8}",
            f"{human_ns(row['io_wait_ns']):>9}",
            f"{human_ns(row['cpu_ns']):>9}",
        ]
        where = printable(row["target"]) if row["target"] else "(CPU)"
        lines.append(f"  {start:<19} {' '.join(texts)}  {where}")
    return lines
