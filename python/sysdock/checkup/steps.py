"""The four steps, from what the user gave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.checkup import FINDING, OK, UNKNOWN, rate, ratio, volume
from sysdock.checkup.answers import not_computed
from sysdock.checkup.load import Period, load_parts, load_tables, no_load
from sysdock.checkup.ratio import no_times, ratio_part
from sysdock.checkup.statement import Name, Part, Rename, Step, as_it_is
from sysdock.errors import NotComputed

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.analysis.finding import Finding
    from sysdock.checkup.given import Given
    from sysdock.checkup.observed import Rows

TITLES = (
    ("I/O ratio: does the job wait for I/O?", "入出力の比: ジョブは待っているか"),
    (
        "Volume, rate and load: is it more or slower than it should be?",
        "量、速さ、負荷: 多すぎないか、遅すぎないか",
    ),
    ("System calls: what does the program do?", "システムコール: プログラムは何をしているか"),
    ("What to send to the administrator", "管理者に渡すもの"),
)
_MOST_FINDINGS = 5


def first_steps(given: Given, session: Session | None) -> list[Step]:
    """Steps 1 and 2: the ratio; volume and rate from the recording, load from counters and samples."""
    tables: dict[str, Rows] = {**load_tables(given)}
    if given.job:
        tables[ratio.TABLE] = [given.job.row()]
    files: volume.Files | NotComputed | None = None
    if session:
        tables[rate.TABLE] = rate.rate_rows(given.site.rates)
        try:
            files = volume.files_of(session, given.files)
            tables[volume.TABLE] = files.rows
        except NotComputed as error:
            files = error
    waiting, moved, load = no_times(), [_no_recording("volume")], [no_load()]
    if tables:
        from sysdock.checkup.observed import observed

        with observed(tables, session.recording if session else None) as own:
            if given.job:
                waiting = ratio_part(own, given.job, given.site)
            if files:
                moved = [_volume_part(own, files), *rate.rate_parts(own)]
            load = load_parts(own, given, _during(given, session)) or load
    return [Step(1, TITLES[0], [waiting]), Step(2, TITLES[1], moved + load)]


def _volume_part(session: Session, files: volume.Files | NotComputed) -> Part:
    try:
        if isinstance(files, NotComputed):
            return not_computed("volume", files)
        return volume.volume_part(session, files)
    except NotComputed as error:
        return not_computed("volume", error)


def _during(given: Given, session: Session | None) -> Period | None:
    """When the job ran, ns since the epoch."""
    if given.run:
        return given.run.started_ns, given.run.ended_ns
    if session and session.recording.clock.get("kind") in ("epoch", "time_of_day"):
        start = session.recording.started_ns
        return start, start + session.recording.manifest["duration_ns"]
    return None


def step_3(session: Session | None, findings: Sequence[Finding] | None = None) -> Step:
    """The main findings of the rules, largest saving first."""
    if session is None:
        return Step(3, TITLES[2], [_no_recording("calls")])
    from sysdock.analysis.finding import main_findings

    japanese = session.diagnose("ja")
    english = session.diagnose("en")
    in_japanese = {(f.rule, f.subject): f for f in japanese}
    main = main_findings(english)
    parts = [
        _finding(finding, in_japanese[finding.rule, finding.subject]) for finding in main[:_MOST_FINDINGS]
    ]
    counts = {status: sum(f.status == status for f in english) for status in ("finding", "unknown", "ok")}
    values = {**counts, "main": len(main), "shown": len(parts)}
    sentence = (
        "{main:n:main finding}; {ok} passed, {unknown} inconclusive.",
        "主な所見 {main} 件。判定できなかったルール {unknown} 件、問題なし {ok} 件。",
    )
    wrong = any(not finding.is_note for finding in main)
    verdict = FINDING if wrong else UNKNOWN if counts["unknown"] or not counts["ok"] else OK
    do = ("`sysdock diagnose REC` shows all of them.", "`sysdock diagnose REC` ですべて見られます。")
    return Step(3, TITLES[2], [Part("calls", verdict, sentence, do if english else None, values), *parts])


def _finding(english: Finding, japanese: Finding) -> Part:
    """A finding in its own words, which a bundle makes again from the recording in it."""
    values: dict[str, Any] = {
        "rule": english.rule,
        "title": english.title,
        "title_ja": japanese.title,
        "subject": english.subject,
        "gain_ns": english.gain_ns,
        "gain": english.gain_ns / 1e9 if english.gain_ns is not None else None,
        "reason": english.reason,
        "reason_ja": japanese.reason,
        "advice": english.advice,
        "advice_ja": japanese.advice,
        "others": english.others,
    }
    gain = (" (could save up to {gain:s})", " (最大 {gain:s} 短縮)") if english.gain_ns else ("", "")
    subject = ": {subject}" if english.subject else ""
    sentence = (
        "{title}" + subject + gain[0] + ". {reason}",
        "{title_ja}" + subject + gain[1] + "。{reason_ja}",
    )
    verdict = OK if english.is_note else FINDING
    return Part("finding", verdict, sentence, ("{advice}", "{advice_ja}"), values)


def step_4(steps: Sequence[Step], session: Session | None, bundle: Path | None, hashed: bool) -> Step:
    """Whether there is something to hand over, and whether it is ready."""
    if bundle:
        sentence = (
            "{bundle} contains the recording without file contents, the findings and this check-up"
            + ("; names are hashed, and {key} translates them back." if hashed else "."),
            "{bundle} に、ファイルの内容を除いた記録、所見、この診断が入っています。"
            + ("名前はハッシュ値に置き換えてあり、{key} で元に戻せます。" if hashed else ""),
        )
        values = {"bundle": Name("path", str(bundle)), "key": Name("path", f"{bundle}.key"), "hashed": hashed}
        do = (
            "Send it with the time of the job, and describe what you expected.",
            "ジョブの時刻と、期待していた結果を添えて渡してください。",
        )
        if hashed:
            do = (do[0] + " Keep the key to yourself.", do[1] + "鍵は渡さないでください。")
        return Step(4, TITLES[3], [Part("bundle", OK, sentence, do, values)])
    if session is None:
        return Step(4, TITLES[3], [_no_recording("bundle")])
    bad = [step.number for step in steps if step.status == FINDING]
    values = {"steps": bad}
    if bad:
        sentence = (
            "Steps that need a closer look: {steps}.",
            "ステップ {steps} に確認が必要な点があります。",
        )
    else:
        sentence = ("No bundle was created.", "渡すものは作られていません。")
    do = (
        "If the advice of step 3 does not help, `-o bundle.tar.gz` creates a bundle for the administrator; "
        "--hash-names hides names.",
        "ステップ 3 の対策で解決しなければ、`-o bundle.tar.gz` で管理者に渡すものを作れます。"
        "--hash-names で名前を隠せます。",
    )
    return Step(4, TITLES[3], [Part("bundle", UNKNOWN, sentence, do, values)])


def _no_recording(topic: str) -> Part:
    sentence = ("There is no recording of the job.", "ジョブの記録がありません。")
    do = (
        "Record it: `sysdock run -o rec -- CMD`, or `sysdock import run.strace -o rec`; then "
        "`sysdock checkup rec`.",
        "`sysdock run -o rec -- CMD` か `sysdock import run.strace -o rec` で記録し、"
        "`sysdock checkup rec` としてください。",
    )
    return Part(topic, UNKNOWN, sentence, do)


def content(steps: Sequence[Step], lang: str, rename: Rename = as_it_is) -> list[dict[str, Any]]:
    """The steps as JSON has them."""
    return [
        {
            "step": step.number,
            "title": step.title[lang == "ja"],
            "verdict": step.verdict,
            "parts": [
                {
                    "topic": part.topic,
                    "verdict": part.verdict,
                    "text": part.text(lang, rename),
                    "advice": part.advice(lang, rename) or None,
                    "values": part.plain_values(rename),
                }
                for part in step.parts
            ],
        }
        for step in steps
    ]
