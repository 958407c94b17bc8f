"""Diagnoses: order, trust, words."""

from __future__ import annotations

import json

import pytest
from make_recording import RecordingMaker
from sysdock.analysis.finding import Finding, fold, likely_gain
from sysdock.errors import UserError
from sysdock.recording.manifest import NOT_REQUESTED

RULE = """\
-- Rule {name}
-- needs: calls
-- evidence: io/files --file {{subject}}
-- says: finding en  because
-- says: finding ja  なぜなら
-- says: ok en       because
SELECT subject, status, 1.0::DOUBLE AS value, 2.0::DOUBLE AS limit_value, CAST(gain * 2 AS BIGINT) AS cost_ns,
    CAST(gain AS BIGINT) AS gain_ns, 'high' AS certainty
FROM (VALUES {rows}) AS v(subject, status, gain)
"""
PAGE = """\
# Title

## What to do

Do `this`
first.

Then that.

# 題

## どうするか

こうする。
"""


def add(pack, name: str, *rows: tuple[str, str, int | None]) -> None:
    values = ", ".join(
        f"('{subject}', '{status}', {'NULL' if gain is None else gain})" for subject, status, gain in rows
    )
    pack.add(f"r/{name}", RULE.format(name=name, rows=values), PAGE, kind="rules")


def test_circumstances_of_the_recording_come_last(maker: RecordingMaker, open_session, pack) -> None:
    add(pack, "b", ("note", "finding", 0), ("promise", "finding", 10))
    about = RULE.format(name="a", rows="('busy machine', 'finding', 1000)")
    about = about.replace("'high' AS certainty", "'high' AS certainty, true AS circumstance")
    columns = (
        "subject VARCHAR, status VARCHAR, value DOUBLE, limit_value DOUBLE, cost_ns BIGINT, gain_ns BIGINT"
    )
    for column in [*columns.split(", "), "certainty VARCHAR", "circumstance BOOLEAN"]:
        about = about.replace("-- evidence:", f"-- column: {column}  x\n-- evidence:")
    pack.add("r/a", about.replace("CAST(gain AS BIGINT)", "CAST(0 AS BIGINT)"), PAGE, kind="rules")
    found = open_session(maker.make(), pack.library).diagnose()
    # By its cost, 2,000 ns, it would stand before the note.
    assert [finding.subject for finding in found] == ["promise", "note", "busy machine"]


def test_order_and_words(maker: RecordingMaker, open_session, pack) -> None:
    add(pack, "a", ("small", "finding", 10), ("none", "finding", None))
    add(pack, "b", ("big one", "finding", 1000), ("fine", "ok", None))
    add(pack, "c", ("unsure", "unknown", None))
    session = open_session(maker.make(), pack.library)
    found = session.diagnose()
    # What is too small to matter comes last of the findings, with those of its rule.
    assert [finding.subject for finding in found] == ["small", "none", "big one", "unsure", "fine"]
    first = found[2]
    assert (first.rule, first.gain_ns, first.cost_ns, first.value, first.limit_value) == (
        "r/b",
        1000,
        2000,
        1.0,
        2.0,
    )
    assert (first.title, first.reason, first.advice) == ("Title", "because", "Do this first.")
    japanese = session.findings()[2].in_language("ja")
    assert (japanese.title, japanese.reason, japanese.advice) == ("題", "なぜなら", "こうする。")
    assert first.evidence == "io/files --file 'big one'"
    assert found[-1].evidence is None


def a_finding(gain_ns: int | None, cost_ns: int, certainty: str) -> Finding:
    words = dict.fromkeys(("reason", "title", "advice"), "")
    return Finding("r", "finding", "s", 1, 1, cost_ns, gain_ns, certainty, evidence=None, **words)


@pytest.mark.parametrize(
    ("gain_ns", "cost_ns", "certainty", "likely_ns"),
    [
        (43, 50, "medium", 43),
        (None, 400, "medium", 100),
        (None, 400, "low", 40),
        (0, 400, "low", 0),
    ],
)
def test_a_large_cost_counts_for_a_part_where_its_gain_is_not_known(
    gain_ns: int | None, cost_ns: int, certainty: str, likely_ns: float
) -> None:
    assert likely_gain(a_finding(gain_ns, cost_ns, certainty)) == likely_ns


def test_japanese(maker: RecordingMaker, open_session, pack) -> None:
    add(pack, "a", ("x", "finding", 10))
    [finding] = open_session(maker.make(), pack.library).diagnose("ja")
    assert (finding.title, finding.reason, finding.advice) == ("題", "なぜなら", "こうする。")


def test_the_evidence_takes_odd_names_literally(maker: RecordingMaker, open_session, pack) -> None:
    add(pack, "a", ("/tmp/a,[b]* c", "finding", 10))
    [finding] = open_session(maker.make(), pack.library).diagnose()
    assert finding.evidence == r"io/files --file '/tmp/a\,\[b\]\* c'"


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"complete": False}, "the recording is incomplete"),
        ({"lines_total": 1000, "lines_understood": 989}, "only 98.9 % of the lines were understood"),
        ({"lost_events": 3}, "3 events were lost"),
    ],
)
def test_ok_of_a_doubtful_recording_is_unknown(
    maker: RecordingMaker, open_session, pack, manifest: dict, reason: str
) -> None:
    add(pack, "a", ("x", "ok", None), ("y", "finding", 1))
    session = open_session(maker.make(**manifest), pack.library)
    found = session.diagnose()
    assert [finding.status for finding in found] == ["finding", "unknown"]
    assert reason in found[1].reason
    assert session.diagnose("ja")[1].reason != found[1].reason


def test_calls_that_are_filtered_out_are_not_taken_for_good_ones(maker: RecordingMaker, open_session) -> None:
    for filters in ({"only_ok": True}, {"only_errors": True}):
        session = open_session(maker.make(name=next(iter(filters))), **filters)
        found = {finding.rule: finding for finding in session.diagnose()}
        assert found["io/failing_calls"].status == "unknown"
        assert "--only-" in found["io/failing_calls"].reason


def test_99_percent_are_enough(maker: RecordingMaker, open_session, pack) -> None:
    add(pack, "a", ("x", "ok", None))
    [finding] = open_session(maker.make(lines_total=1000, lines_understood=990), pack.library).diagnose()
    assert finding.status == "ok"


def test_lost_events_of_another_table_do_not_matter_to_the_table_count(
    maker: RecordingMaker, open_session, pack
) -> None:
    add(pack, "a", ("x", "ok", None))
    folder = maker.make()
    session = open_session(folder, pack.library)
    session.recording.manifest["tables"]["calls"]["lost"] = 7
    [finding] = session.diagnose()
    assert finding.status == "unknown"
    assert "7 events were lost" in finding.reason


def test_a_missing_table_is_unknown(maker: RecordingMaker, open_session, pack) -> None:
    add(pack, "a", ("x", "ok", None))
    [finding] = open_session(maker.write({"paths": []}), pack.library).diagnose()
    assert finding.status == "unknown"
    assert finding.reason == "The recording has no table calls."


def test_what_a_recorder_never_records_is_no_question(maker: RecordingMaker, open_session) -> None:
    """A log of strace has no page faults; a recording by the kernel without them could have had them."""
    calls, faults = {"family": "calls", "missing": None}, {"family": "faults", "missing": NOT_REQUESTED}
    for name, families, expected in (("log", [calls], []), ("kernel", [calls, faults], ["unknown"])):
        folder = maker.make(name=name, families=families)
        content = json.loads((folder / "recording.json").read_text())
        del content["tables"]["file_faults"]
        (folder / "recording.json").write_text(json.dumps(content))
        found = [f for f in open_session(folder).diagnose() if f.rule == "io/random_faults"]
        assert [finding.status for finding in found] == expected
    assert [finding.reason for finding in found] == [
        "The recording has no table file_faults. To record `faults`, see `--what` and `--preset` of `sysdock run`."
    ]


@pytest.mark.parametrize("rows", [[("x", "fine", 1)], []])
def test_a_rule_must_say_what_it_is(maker: RecordingMaker, open_session, pack, rows: list) -> None:
    add(pack, "a", *(rows or [("x", "ok", 1)]))
    if not rows:
        path = pack.root / "rules" / "r" / "a.sql"
        path.write_text(path.read_text() + "WHERE false")
    with pytest.raises(UserError) as caught:
        open_session(maker.make(), pack.library).diagnose()
    assert caught.value.place == str(pack.root / "rules" / "r" / "a.sql")


def test_the_rules_of_the_library_answer(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make())
    found = session.diagnose()
    rules = {rule.id for rule in session.library.rules()}
    of_disks = {rule for rule in rules if rule.startswith("disk/")}
    # They judge what a check-up is given, which no recording of a command or disk holds.
    of_checkups = {rule for rule in rules if rule.startswith("checkup/")}
    of_jobs = {rule for rule in rules if rule.startswith("jobs/")}
    of_ranks = {rule for rule in rules if rule.startswith("ranks/")}
    of_dumps = {rule for rule in rules if rule.startswith("dump/")}
    of_itrace = {rule for rule in rules if rule.startswith("itrace/")}
    of_loads = {rule for rule in rules if rule.startswith("load/")}
    of_kernel = {
        rule for rule in rules if rule.startswith(("time/", "memory/", "locks/", "block/", "requests/"))
    } - {"locks/file_locks"}
    of_others = of_disks | of_checkups | of_jobs | of_ranks | of_dumps | of_itrace | of_loads
    of_calls = rules - of_others - of_kernel
    assert {finding.rule for finding in found} == of_calls
    # What the scheduler and samples tell is asked where they were recorded.
    assert {finding.rule for finding in open_session(maker.make_waits()).diagnose()} == of_calls | of_kernel
    # A scan of a disk is asked by its own rules only.
    assert {finding.rule for finding in open_session(maker.make_scan()).diagnose()} == of_disks
    assert {finding.rule for finding in open_session(maker.make_load()).diagnose()} == of_loads
    assert {finding.rule for finding in open_session(maker.make_jobs()).diagnose()} == of_jobs
    assert {finding.rule for finding in open_session(maker.make_dump()).diagnose()} == of_dumps
    assert {finding.rule for finding in open_session(maker.make_itrace()).diagnose()} == of_itrace
    assert {finding.rule for finding in open_session(maker.make_ranks()).diagnose()} == of_calls | of_ranks
    assert open_session(maker.make_experiment()).diagnose() == []
    # A recording that ended before its first table is not outside the rules of its kind: they are inconclusive.
    for about, asked in (("calls", of_calls), ("scan", of_disks)):
        begun = open_session(maker.write({}, f"begun: {about}", about=about)).diagnose()
        assert {finding.status for finding in begun} == {"unknown"}
        assert {finding.rule for finding in begun} <= asked
    empty = open_session(maker.make(calls=[], name="empty")).diagnose()
    assert {finding.status for finding in empty} == {"unknown"}


def test_a_chain_of_explanations_loses_nothing() -> None:
    def finding(rule: str, *explained_by: str) -> Finding:
        words = dict.fromkeys(("reason", "title", "advice"), "")
        numbers = {"value": 1.0, "limit_value": 1.0, "cost_ns": 10, "gain_ns": 10, "certainty": "high"}
        own = {"rule": rule, "status": "finding", "subject": "x", "evidence": None}
        return Finding(**own, **numbers, **words, explained_by=explained_by)

    chain = [finding("a", "b"), finding("b", "c"), finding("c", "d"), finding("d")]
    folded = fold(chain)
    assert [(each.rule, each.part_of) for each in folded] == [
        ("d", None),
        *((rule, ("d", "x")) for rule in "abc"),
    ]
    # In a ring each explains the next: all stay, and what hangs on the ring stays with it.
    ring = fold([finding("a", "b"), finding("b", "c"), finding("c", "b")])
    assert sorted((each.rule, each.part_of) for each in ring if not each.part_of) == [
        ("b", None),
        ("c", None),
    ]
    assert {each.rule for each in ring} == {"a", "b", "c"}
    # Reads and writes of a file are two findings of one name: what they explain hangs on the first.
    twice = fold([finding("d"), finding("d"), finding("a", "d")])
    assert [each.rule for each in twice] == ["d", "a", "d"]
