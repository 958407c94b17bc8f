"""Findings say whose calls they are about, which part of the time these take, and why they are so sure."""

from __future__ import annotations

import json

import pytest
from make_recording import STARTED_NS, RecordingMaker
from sysdock.analysis.facts import callers, certainty, share
from sysdock.report import as_text
from sysdock.report.findings import findings_section
from sysdock.sentences import Words, say

MS = 1_000_000


# Programs by the number that `commands` gives them: in the order in which calls name them.
APP, LOG = 0, 1


def life(pid: int, tid: int, comm_id: int, **more: object) -> dict[str, object]:
    """A thread that lives 2 s, from the start of the recording on."""
    times = {"start_ts_ns": STARTED_NS, "end_ts_ns": STARTED_NS + 2000 * MS}
    common = {"depth": 0, "tree_order": tid, "execs": 0, "calls": 1, **times}
    return {"pid": pid, "tid": tid, "comm_id": comm_id, **common, **more}


def writes(
    pid: int, path: str, count: int, comm: str = "app", tid: int = 0, dur_ns: int = MS // 2
) -> list[dict[str, object]]:
    """Small writes of a thread, one millisecond apart."""
    common = {"call": "write", "path": path, "dur_ns": dur_ns, "requested_bytes": 8, "transferred_bytes": 8}
    by = {"pid": pid, "tid": tid or pid, "comm": comm}
    return [{**common, **by, "t": n / 1000, "offset_bytes": 8 * n} for n in range(count)]


def _both(words: Words | None) -> tuple[str, str]:
    return say(words, "en"), say(words, "ja")


def found_on(session, path: str):
    """The finding of io/small_requests on a file."""
    return next(f for f in session.findings() if f.rule == "io/small_requests" and f.file == path)


def test_one_process_has_its_share_of_the_elapsed_time(maker: RecordingMaker, open_session) -> None:
    rec = maker.make(writes(7, "/out", 1000), processes=[life(7, 7, APP)], duration_ns=2000 * MS)
    finding = found_on(open_session(rec), "/out")
    assert (finding.share, finding.share_of) == (0.25, "elapsed")
    assert _both(share(finding)) == ("takes 25.0 % of the elapsed time", "経過時間の 25.0 %")
    # There is no other: nothing needs to be said of whose it is.
    assert (finding.programs, callers(finding)) == (("app",), None)


def test_a_finding_names_its_process_and_program_among_several(maker: RecordingMaker, open_session) -> None:
    calls = [*writes(7, "/out", 1000), *writes(8, "/other", 1000, "log")]
    rec = maker.make(calls, processes=[life(7, 7, APP), life(8, 8, LOG)], duration_ns=2000 * MS)
    session = open_session(rec)
    finding = found_on(session, "/other")
    assert (finding.process, finding.program, finding.share_of) == (8, "log", "elapsed")
    assert _both(callers(finding)) == ("process 8 (log)", "プロセス 8 (log)")


def test_several_processes_are_counted_and_take_at_most_their_share(
    maker: RecordingMaker, open_session
) -> None:
    calls = [*writes(7, "/out", 600), *writes(8, "/out", 500), *writes(9, "/out", 400, "log")]
    lives = [life(7, 7, APP), life(8, 8, APP), life(9, 9, LOG)]
    finding = found_on(open_session(maker.make(calls, processes=lives, duration_ns=2000 * MS)), "/out")
    assert (finding.process, finding.processes, finding.programs) == (None, 3, ("app", "log"))
    assert _both(callers(finding)) == ("3 processes (app, log)", "3 プロセス (app, log)")
    assert (finding.share, finding.share_of) == (0.375, "elapsed_at_most")


def test_what_threads_do_side_by_side_is_a_share_of_their_time(maker: RecordingMaker, open_session) -> None:
    calls = [call for pid in (7, 8, 9, 10) for call in writes(pid, "/out", 1000, dur_ns=900_000)]
    lives = [life(pid, pid, APP) for pid in (7, 8, 9, 10)]
    finding = found_on(open_session(maker.make(calls, processes=lives, duration_ns=2000 * MS)), "/out")
    # 3.6 s in 2 s: no part of the elapsed time, but 45 % of the 8 s that the four lived.
    assert (finding.cost_ns, finding.share, finding.share_of) == (3600 * MS, 0.45, "threads")
    assert _both(share(finding)) == ("takes 45.0 % of the time of all threads", "全スレッドの時間の 45.0 %")


def test_threads_of_one_process_may_overlap(maker: RecordingMaker, open_session) -> None:
    calls = [*writes(7, "/out", 500), *writes(7, "/out", 500, tid=70)]
    lives = [life(7, 7, APP), life(7, 70, APP, process_id=0), life(8, 8, APP)]
    finding = found_on(open_session(maker.make(calls, processes=lives, duration_ns=2000 * MS)), "/out")
    assert (finding.process, finding.share_of) == (7, "elapsed_at_most")


def test_without_durations_there_is_no_share(maker: RecordingMaker, open_session) -> None:
    calls = [
        {key: value for key, value in call.items() if key != "dur_ns"} for call in writes(7, "/out", 1000)
    ]
    session = open_session(maker.make(calls, clock={"kind": "absolute", "has_durations": False}))
    finding = found_on(session, "/out")
    assert (finding.certainty, finding.share, share(finding)) == ("low", None, None)


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("en", "high confidence (each read and write was recorded with its size and time)"),
        ("ja", "確度: 高 (読み書きは 1 回ずつサイズと時間が記録されている)"),
    ],
)
def test_a_certainty_has_its_reason(maker: RecordingMaker, open_session, lang: str, said: str) -> None:
    finding = found_on(open_session(maker.make(writes(7, "/out", 1000))), "/out")
    words = certainty(finding)
    assert words
    assert say(words, lang) == said
    assert finding.in_language(lang).certainty_reason == said.partition("(")[2][:-1]


def test_reports_say_it_too(maker: RecordingMaker, open_session) -> None:
    calls = [*writes(7, "/out", 1000), *writes(8, "/other", 1000, "log")]
    rec = maker.make(calls, processes=[life(7, 7, APP), life(8, 8, LOG)], duration_ns=2000 * MS)
    session = open_session(rec)
    finding = found_on(session, "/other")
    said = [fact for fact in (callers(finding), share(finding), certainty(finding)) if fact]
    assert len(said) == 3
    page = findings_section(session, session.findings())
    for english, japanese in [(say(words, "en"), say(words, "ja")) for words in said]:
        assert english in as_text(session, "md")
        assert japanese in as_text(session, "md", "ja")
        assert english in page
        assert japanese in page
    rows = json.loads(as_text(session, "json"))["findings"]
    [row] = [row for row in rows if row["rule"] == "io/small_requests" and row["file"] == "/other"]
    assert (row["share"], row["share_of"], row["process"], row["program"]) == (0.25, "elapsed", 8, "log")
    assert row["certainty_reason"] == say(finding.certainty_reason, "en")


def test_each_rule_explains_each_certainty_in_both_languages(library) -> None:
    for rule in library.rules():
        page = library.page(rule)
        for name in page.clauses():
            level, _, variant = name.partition(".")
            english, japanese = _both(page.how_sure(level, variant))
            assert english, (rule.id, name)
            assert japanese, (rule.id, name)
            assert english != japanese, (rule.id, name)
            assert not english.endswith("."), (rule.id, name)
