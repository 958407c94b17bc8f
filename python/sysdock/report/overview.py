"""The head of the report: the verdict in one line, what was recorded, when, where, and how completely."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence

from sysdock.analysis import Finding, Session
from sysdock.analysis.description import statements
from sysdock.analysis.finding import by_rule, main_findings, total_gain
from sysdock.analysis.marks import marks_of
from sysdock.analysis.tracer import tracer_cost
from sysdock.errors import NotComputed
from sysdock.page.markup import both, join, text
from sysdock.page.numbers import duration, moment, size
from sysdock.page.statements_ja import clock_note_ja, ending_ja
from sysdock.report.analyses import Answer
from sysdock.report.sources import sql_link
from sysdock.report.time_spent import where_bar
from sysdock.sections import Capture, Statement
from sysdock.sections.coverage import unit_words
from sysdock.text import agreeing, percent

# How many findings a reader sees before anything else.
_FIRST = 3
# Users that are named.
_USERS = 5
_USERS_SQL = """SELECT user_id, count(DISTINCT process_id) AS processes FROM processes
WHERE user_id IS NOT NULL GROUP BY user_id ORDER BY processes DESC, user_id"""
_TRACED = (
    "All times include the overhead of tracing, which is large for short calls: compare them with each "
    "other, not with a run without tracing.",
    "所要時間はすべてトレースの負荷を含みます。短い呼び出しほど影響が大きいので、数値はこの記録の中だけで比べ、"
    "トレースしていない実行とは比べないでください。",
)


def _traced(session: Session) -> str:
    """That times include the cost of a tracer, and about how much that is, as HTML."""
    if not session.recording.clock.get("includes_tracer"):
        return ""
    cost = tracer_cost(session)
    words = both(*_TRACED) + (" " + both(*cost.words) if cost else "")
    return f'<p class="note">{words}</p>'


def overview_section(session: Session, findings: Sequence[Finding], answers: Mapping[str, Answer]) -> str:
    """Verdict, counts and facts."""
    counts = {status: sum(f.status == status for f in findings) for status in ("unknown", "ok")}
    counts = {"finding": len(main_findings(findings)), **counts}
    labels = {
        "finding": both(agreeing(counts["finding"], "finding"), "所見"),
        "unknown": both("inconclusive", "判定不能"),
        "ok": both("passed", "問題なし"),
    }
    tiles = "".join(
        f'<div class="count {status}"><b>{number}</b>{labels[status]}</div>'
        for status, number in counts.items()
    )
    more = both("How it was recorded", "記録の詳細")
    warnings = join(f'<p class="warn">{words}</p>' for words in _warnings(session))
    traced = _traced(session)
    says = f'<p class="says">{_verdict(session, findings)}</p>{_first_three(session, findings)}'
    return f"""<section class="card" id="overview"><div class="verdict">
<div><h1>{title(session)}</h1>{says}</div>
<div class="counts">{tiles}</div></div>
{where_bar(session, answers)}
{_list(_facts(session))}
<details class="more"><summary>{more}</summary>{_list(_further_facts(session))}
<p class="muted">{_where_facts_are(session)}</p></details>
{warnings}
{traced}</section>"""


def _where_facts_are(session: Session) -> str:
    command = f"<code>sysdock info {text(shlex.quote(session.recording.folder.name))}</code>"
    return both(f"{command} prints the same facts.", f"これらの情報は {command} と同じものです。")


def title(session: Session) -> str:
    """What was recorded, as HTML."""
    english, japanese = session.subject
    if session.recording.manifest.get("command"):
        return f'<span class="mono">{text(english)}</span>'
    return text(english) if english == japanese else both(text(english), text(japanese))


def _verdict(session: Session, findings: Sequence[Finding]) -> str:
    found = [finding for finding in main_findings(findings) if not finding.is_note]
    if not found and (stated := statements(session, session.recording.folder.name)):
        return join(f"{both(*map(text, statement.text))} {_commands(statement)}" for statement in stated)
    if not found:
        return _nothing_large(findings)
    group = by_rule(found)[0]
    first, others = group[0], len(group) - 1
    english = f"{text(first.title)}, <code>{text(first.subject)}</code>"
    japanese = f"{text(first.title_ja)}、<code>{text(first.subject)}</code>"
    if others:
        english, japanese = f"{english} and {others} more", f"{japanese} ほか {others} 件"
    if first.gain_ns is None:
        return both(f"Look at this first: {english}", f"最初に確認する所見: {japanese}")
    gain = sql_link(session.library.rule(first.rule), duration(total_gain(group)))
    return both(f"Largest saving: up to {gain}. {english}", f"最も効果が大きいもの: 最大 {gain}。{japanese}")


def _nothing_large(findings: Sequence[Finding]) -> str:
    """The verdict where nothing but notes was found, if that."""
    english, japanese = "No bottleneck was found", "ボトルネックは見つかりませんでした"
    if main_findings(findings):
        english, japanese = "Minor findings only", "軽微な所見のみです"
    if any(finding.status == "unknown" for finding in findings):
        english, japanese = (
            f"{english}; some rules were inconclusive",
            f"{japanese}。判定できない項目があります",
        )
    return both(f"{english}.", f"{japanese}。")


def _commands(statement: Statement) -> str:
    return join(f"<code>{text(command)}</code>" for command in statement.commands)


def _first_three(session: Session, findings: Sequence[Finding]) -> str:
    """The rules whose findings could save most, with links to what they found and what to do about it."""
    groups = by_rule(main_findings(findings))[:_FIRST]
    if not groups:
        return ""
    items = []
    for group in groups:
        first, gain = group[0], total_gain(group)
        amount = sql_link(session.library.rule(first.rule), duration(gain))
        won = both(f" (up to {amount})", f" (最大 {amount})") if gain else ""
        place = text(first.rule.replace("/", "-"))
        link = f'<a href="#rule-{place}">{both(text(first.title), text(first.title_ja))}</a>{won}'
        subject = f": <code>{text(first.subject)}</code>" if first.subject else ""
        items.append(f"<li>{link}{subject}</li>")
    return f'<ol class="first">{join(items)}</ol>'


def _facts(session: Session) -> list[tuple[str, str]]:
    """What a reader must know of the recording: name and value as HTML."""
    recording, manifest = session.recording, session.recording.manifest
    unknown = both("unknown", "不明")
    clock = recording.clock
    started = moment(manifest["started_ns"]) if clock.get("kind") in ("epoch", "time_of_day") else unknown
    calls = f"{recording.rows('calls'):,}" if "calls" in recording.tables else unknown
    return [
        (both("Host", "ホスト"), text(manifest.get("host") or "") or unknown),
        (both("Started", "開始"), started),
        (
            both("Duration", "時間"),
            duration(manifest["duration_ns"]) if recording.has_clock else unknown,
        ),
        (both("Ended", "終了"), _ended(session)),
        (both("System calls", "システムコール"), calls),
        (both("Lost events", "失われたイベント"), f"{recording.lost_events:,}"),
    ]


def _further_facts(session: Session) -> list[tuple[str, str]]:
    """How it was recorded, and from what: for those who doubt a number."""
    recording, manifest = session.recording, session.recording.manifest
    marks = (both(text(one.sentence()), text(one.sentence("ja"))) for one in marks_of(session))
    facts = [
        (both("Directory", "ディレクトリ"), text(manifest.get("directory") or "")),
        (both("Understood", "解釈できた行"), join(_coverage(capture) for capture in recording.captures)),
        (both("Recorder", "レコーダー"), text(_recorders(session))),
        (both("Input", "入力"), _sources(session)),
        (both("Recording", "記録"), text(recording.folder.name)),
        (both("Clock", "時計"), _clock(recording.clock.get("note"))),
        (both("Marks", "マーク"), join(marks)),
        (both("Users", "ユーザー"), _users(session)),
    ]
    return [(name, value) for name, value in facts if value]


def _clock(note: str | None) -> str:
    return both(text(note), text(clock_note_ja(note))) if note else ""


def _list(facts: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{items}</dl>'


def _coverage(capture: Capture) -> str:
    understood, total = capture["understood"], capture["total"]
    english, japanese = map(text, unit_words(capture["unit"]))
    if not total:
        return f"<div>{both(f'no {english}', f'{japanese}なし')}</div>"
    share = percent(understood, total)
    return f"<div>{both(f'{share} of {total:,} {english}', f'{total:,} {japanese}の {share}')}</div>"


def _recorders(session: Session) -> str:
    captures = session.recording.captures
    return ", ".join(" ".join([capture["recorder"], *(capture.get("options") or [])]) for capture in captures)


def _users(session: Session) -> str:
    """Whose processes are shown, where they are of several users: readers may be none of them."""
    if "processes" not in session.recording.tables:
        return ""
    try:
        rows = session.dicts(_USERS_SQL)
    except NotComputed as error:
        return both(*map(text, error.words))
    if len(rows) < 2:
        return ""
    first = rows[:_USERS]
    more = len(rows) - len(first)
    named = ", ".join(f"{row['user_id']} ({row['processes']:,})" for row in first)
    english = f"processes of {len(rows):,} users: {named}" + (f" and {more:,} more" if more else "")
    japanese = f"{len(rows):,} ユーザーのプロセス: {named}" + (f" ほか {more:,}" if more else "")
    return both(
        f"{english}. Arguments of their programs and names of their files are in this report.",
        f"{japanese}。このレポートには、各ユーザーのプログラムの引数とファイル名が含まれます。",
    )


def _ended(session: Session) -> str:
    manifest = session.recording.manifest
    if manifest.get("exit_signal"):
        return both(f"killed by {text(manifest['exit_signal'])}", f"{text(manifest['exit_signal'])} で終了")
    if manifest.get("exit_code") is None:
        return both("unknown", "不明")
    return both(f"exit status {manifest['exit_code']}", f"終了コード {manifest['exit_code']}")


def _sources(session: Session) -> str:
    """The logs that were imported; what a recorder wrote for itself is of no interest."""
    sources = session.recording.sources
    shown = [f"{text(source.get('path'))} ({size(source.get('bytes'))})" for source in sources[:3]]
    if len(sources) > 3:
        shown.append(both(f"and {len(sources) - 3} more", f"ほか {len(sources) - 3}"))
    return ", ".join(shown)


def _warnings(session: Session) -> list[str]:
    """What the reader must know before believing a number."""
    manifest = session.recording.manifest
    found = []
    if not manifest["complete"]:
        ended = session.recording.ended_by
        found.append(
            both(
                f"The recording is incomplete: {text(ended)}.",
                f"記録は途中で終わっています: {text(ending_ja(ended))}。",
            )
        )
    if session.recording.lost_events:
        lost = f"{session.recording.lost_events:,}"
        found.append(
            both(
                f"{lost} events were lost: actual counts are higher.",
                f"{lost} 個のイベントが失われたため、回数は実際より少なくなっています。",
            )
        )
    if not session.recording.has_clock:
        found.append(
            both(
                "The log has no timestamps: time axes show the order of the lines, not seconds.",
                "ログに時刻がありません。時間の軸は行の順序を示すだけで、秒ではありません。",
            )
        )
    if not session.recording.has_durations:
        found.append(
            both(
                "The log has no durations (strace without -T): times are not available.",
                "-T なしの strace のログには所要時間がありません。回数とバイト数だけを示します。",
            )
        )
    for option, value in dataclasses.asdict(session.filters).items():
        if value:
            name = f"--{option.rstrip('_').replace('_', '-')}"
            words = f"<code>{text(name if value is True else f'{name} {value}')}</code>"
            found.append(both(f"Filtered: {words}", f"絞り込み: {words}"))
    found += [both(*map(text, note)) for note in session.notes]
    return found
