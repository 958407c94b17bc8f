"""The one-screen answer after a recording, and the text form of a diagnosis."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sysdock.analysis.writing import human_bytes, human_count, human_ns, pad, printable, shorten, width
from sysdock.cli.info_text import percent

if TYPE_CHECKING:
    from sysdock.analysis import Finding, Session

LINES, COLUMNS = 24, 100
TOP_CALLS, TOP_FILES = 5, 3

_TOP_CALLS_SQL = """SELECT call, count(*) AS calls, count(errno) AS errors,
    CAST(sum(dur_ns) AS BIGINT) AS time_ns, CAST(sum(moved_bytes) AS BIGINT) AS bytes
FROM calls GROUP BY call ORDER BY coalesce(time_ns, 0) DESC, calls DESC, call LIMIT 5"""
# Summed by id first: the paths are then looked up for three rows, not for each call.
_TOP_FILES_SQL = """WITH top AS (
    SELECT path_id, count(*) AS calls, count(errno) AS errors, CAST(sum(dur_ns) AS BIGINT) AS time_ns,
        CAST(sum(moved_bytes) AS BIGINT) AS bytes
    FROM calls WHERE path_id IS NOT NULL GROUP BY path_id
    ORDER BY coalesce(time_ns, 0) DESC, calls DESC, path_id LIMIT 3
) SELECT p.path, t.calls, t.errors, t.time_ns, t.bytes FROM top AS t JOIN paths AS p ON p.path_id = t.path_id
ORDER BY coalesce(t.time_ns, 0) DESC, t.calls DESC, p.path"""

_WORDS = {
    "en": {
        "command unknown": "command unknown",
        "understood": "{share} of {total} lines understood",
        "lost": "{lost} events lost",
        "incomplete": "INCOMPLETE ({how})",
        "calls": "Calls by time",
        "files": "Files by time",
        "count": "calls",
        "errors": "errors",
        "time": "time",
        "bytes": "bytes",
        "findings": "Findings: {finding} (could not tell: {unknown}, fine: {ok})",
        "gain": "up to {gain} to win",
        "do": "What to do: ",
        "more": "... {count} more",
        "report": "Report:",
        "next": "Next:",
        "evidence": "Evidence: ",
        "finding": "FINDING",
        "unknown": "UNKNOWN",
        "ok": "OK",
        "stop": ". ",
    },
    "ja": {
        "command unknown": "コマンド不明",
        "understood": "{total} 行のうち {share} を解釈",
        "lost": "失われたイベント {lost}",
        "incomplete": "不完全 ({how})",
        "calls": "時間の長い呼び出し",
        "files": "時間の長いファイル",
        "count": "回数",
        "errors": "エラー",
        "time": "時間",
        "bytes": "バイト",
        "findings": "指摘: {finding} (判断できず: {unknown}、問題なし: {ok})",
        "gain": "最大 {gain} 短縮",
        "do": "対策: ",
        "more": "... 他 {count} 件",
        "report": "レポート:",
        "next": "次は:",
        "evidence": "根拠: ",
        "finding": "指摘",
        "unknown": "判断できず",
        "ok": "問題なし",
        "stop": "。",
    },
}


def answer_lines(session: Session, report: Path | None, lang: str) -> list[str]:
    """The answer on one screen: what ran, top calls and files, findings, what to type next."""
    words = _WORDS[lang]
    lines = [*_head(session, words), *_tops(session, words)]
    tail = _tail(session, report, words)
    lines += _findings(session.diagnose(lang), words, LINES - len(lines) - len(tail))
    return [shorten(line.rstrip(), COLUMNS) for line in [*lines, *tail]]


def _head(session: Session, words: dict[str, str]) -> list[str]:
    manifest = session.recording.manifest
    total = manifest["lines_total"]
    facts = [
        manifest.get("host") or "-",
        human_ns(manifest["duration_ns"]),
        words["understood"].format(
            share=percent(manifest["lines_understood"], total), total=human_count(total)
        ),
        words["lost"].format(lost=human_count(manifest["lost_events"])),
    ]
    if not manifest["complete"]:
        facts.append(words["incomplete"].format(how=manifest.get("ended_by")))
    return [printable(manifest.get("command") or words["command unknown"]), printable(", ".join(facts)), ""]


def _tops(session: Session, words: dict[str, str]) -> list[str]:
    lines = []
    for title, sql in ((words["calls"], _TOP_CALLS_SQL), (words["files"], _TOP_FILES_SQL)):
        rows = session.fetch(sql)
        if rows:
            lines.append(_row(title, words["count"], words["errors"], words["time"], words["bytes"]))
        for name, calls, errors, time_ns, size in rows:
            numbers = human_count(calls), human_count(errors), human_ns(time_ns), human_bytes(size)
            lines.append(_row("  " + printable(name), *numbers))
    return lines


def _row(name: str, *numbers: str) -> str:
    cells = "".join(pad(number, 13, right=True) for number in numbers)
    return pad(shorten(name, COLUMNS - 52, middle=True), COLUMNS - 52) + cells


def _findings(findings: list[Finding], words: dict[str, str], room: int) -> list[str]:
    """Three lines a finding, or two where there are many; the last line says how many are left out."""
    counts = Counter(finding.status for finding in findings)
    numbers = {status: counts[status] for status in ("finding", "unknown", "ok")}
    lines = ["", words["findings"].format(**numbers)]
    shown = [finding for finding in findings if finding.status == "finding"]
    brief = len(lines) + 3 * len(shown) > room
    fitting = len(shown) if len(lines) + 2 * len(shown) <= room else (room - len(lines) - 1) // 2
    for finding in shown[:fitting]:
        lines += _finding(finding, words, brief)
    if fitting < len(shown):
        return [*lines, "  " + words["more"].format(count=len(shown) - fitting)]
    unknown = [finding for finding in findings if finding.status == "unknown"]
    lines += [f"  {words['unknown']} {f.title}: {printable(f.reason)}" for f in unknown]
    return lines[:room]


def _finding(finding: Finding, words: dict[str, str], brief: bool) -> list[str]:
    gain = f" ({words['gain'].format(gain=human_ns(finding.gain_ns))})" if finding.gain_ns else ""
    what = printable(f"{finding.title}: {finding.subject}")
    reason, advice = printable(finding.reason), "    " + words["do"] + printable(finding.advice)
    if brief:
        # What there is to win must not fall off the end.
        head = shorten(f"  {what}", COLUMNS - width(gain) - 30, middle=True) + gain
        return [f"{head}: {reason}", advice]
    return [shorten(f"  {what}", COLUMNS - width(gain), middle=True) + gain, f"    {reason}", advice]


def _tail(session: Session, report: Path | None, words: dict[str, str]) -> list[str]:
    folder = shlex.quote(str(session.recording.folder))
    lines = [""]
    if report:
        lines.append(f"{words['report']} {report}")
    return [*lines, f"{words['next']} sysdock diagnose {folder}   sysdock show {folder} io/files"]


def diagnosis_lines(findings: list[Finding], recording: Path, lang: str) -> list[str]:
    """All findings with reason, advice, and the command that shows the lines behind each."""
    words = _WORDS[lang]
    counts = Counter(finding.status for finding in findings)
    lines = [words["findings"].format(finding=counts["finding"], unknown=counts["unknown"], ok=counts["ok"])]
    for finding in findings:
        gain = f" ({words['gain'].format(gain=human_ns(finding.gain_ns))})" if finding.gain_ns else ""
        what = f"{finding.title}: {finding.subject}" if finding.subject else finding.title
        lines += ["", f"{words[finding.status]}  {printable(what)}{gain}"]
        lines += _wrapped(printable(finding.reason))
        if finding.status == "finding":
            lines += _wrapped(words["do"] + printable(finding.advice))
            if finding.evidence:
                command = f"sysdock show {shlex.quote(str(recording))} {finding.evidence}"
                lines.append("  " + words["evidence"] + printable(command))
    return lines


def _wrapped(text: str) -> list[str]:
    """Lines of at most 100 columns; Japanese is broken anywhere, as it has no blanks."""
    room = COLUMNS - 2
    if width(text) > len(text) * 1.3:
        room //= 2
    return textwrap.wrap(text, room, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
