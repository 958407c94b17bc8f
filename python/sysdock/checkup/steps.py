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
from sysdock.sentences import fact, say, sentences

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.analysis.finding import Finding
    from sysdock.checkup.observed import Rows
    from sysdock.checkup.user_input import Given

TITLES = (
    fact("checkup/i_o_ratio_does"),
    fact("checkup/volume_rate_load_more"),
    fact("checkup/system_calls_what_does"),
    fact("checkup/what_send_administrator"),
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

    found = session.findings()
    main = main_findings(found)
    parts = [_finding(finding) for finding in main[:_MOST_FINDINGS]]
    counts = {status: sum(f.status == status for f in found) for status in ("finding", "unknown", "ok")}
    values = {**counts, "main": len(main), "shown": len(parts)}
    sentence = fact("checkup/passed_inconclusive")
    wrong = any(not finding.is_note for finding in main)
    verdict = FINDING if wrong else UNKNOWN if counts["unknown"] or not counts["ok"] else OK
    do = fact("checkup/sysdock_diagnose_rec_shows")
    return Step(3, TITLES[2], [Part("calls", verdict, sentence, do if found else None, values), *parts])


def _finding(finding: Finding) -> Part:
    """A finding in its own words, which a bundle makes again from the recording in it."""
    values: dict[str, Any] = {
        "rule": finding.rule,
        "title": finding.title,
        "subject": finding.subject,
        "gain_ns": finding.gain_ns,
        "gain": finding.gain_ns / 1e9 if finding.gain_ns is not None else None,
        "reason": finding.reason,
        "advice": finding.advice,
        "others": finding.others,
    }
    code = "finding" + ("_of" if finding.subject else "") + ("_gain" if finding.gain_ns else "")
    verdict = OK if finding.is_note else FINDING
    return Part("finding", verdict, fact(f"checkup/{code}"), fact("checkup/advice"), values)


def step_4(steps: Sequence[Step], session: Session | None, bundle: Path | None, hashed: bool) -> Step:
    """Whether there is something to hand over, and whether it is ready."""
    if bundle:
        sentence = fact("checkup/bundle_hashed" if hashed else "checkup/bundle")
        values = {"bundle": Name("path", str(bundle)), "key": Name("path", f"{bundle}.key"), "hashed": hashed}
        keep = fact("checkup/keep_the_key") if hashed else None
        do = sentences(fact("checkup/send_time_job_describe"), keep)
        return Step(4, TITLES[3], [Part("bundle", OK, sentence, do, values)])
    if session is None:
        return Step(4, TITLES[3], [_no_recording("bundle")])
    bad = [step.number for step in steps if step.status == FINDING]
    values = {"steps": bad}
    sentence = fact("checkup/steps_need_closer_look") if bad else fact("checkup/no_bundle_created")
    advice = fact("checkup/if_advice_step_3")
    return Step(4, TITLES[3], [Part("bundle", UNKNOWN, sentence, advice, values)])


def _no_recording(topic: str) -> Part:
    sentence = fact("checkup/there_no_recording_job")
    do = fact("checkup/record_sysdock_run_o")
    return Part(topic, UNKNOWN, sentence, do)


def content(steps: Sequence[Step], lang: str, rename: Rename = as_it_is) -> list[dict[str, Any]]:
    """The steps as JSON has them."""
    return [
        {
            "step": step.number,
            "title": say(step.title, lang),
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
