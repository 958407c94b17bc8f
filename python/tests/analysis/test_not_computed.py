"""One value that the engine cannot compute with takes one answer away, and says so; all others stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from make_recording import RecordingMaker, sample_calls
from sysdock.report import as_text
from sysdock.screen.answer import answer_lines
from sysdock.screen.info import info_lines
from sysdock.sections.comparison import compare
from sysdock.sections.description import describe
from sysdock.sentences import say

MOST = 2**63 - 1
RULE = """\
-- Rule {name}
-- needs: calls, totals
-- says: ok en  Fine.
-- says: ok ja  問題なし。
SELECT 'x' AS subject, 'ok' AS status, {value} AS value, 2.0::DOUBLE AS limit_value, CAST(1 AS BIGINT) AS cost_ns,
    CAST(1 AS BIGINT) AS gain_ns, 'high' AS certainty
FROM {table}
"""


def with_duration(maker: RecordingMaker, dur_ns: int, name: str = "long") -> Path:
    """A recording in which one call took that long."""
    calls = sample_calls()
    calls[1]["dur_ns"] = dur_ns
    return maker.make(calls, name)


def with_bytes(maker: RecordingMaker, name: str = "big") -> Path:
    """A recording in which two calls moved more bytes together than a BIGINT holds."""
    calls = sample_calls()
    calls[1]["transferred_bytes"] = calls[4]["transferred_bytes"] = MOST
    calls[5]["result"] = MOST
    return maker.make(calls, name)


def add_rule(pack, name: str, value: str, table: str) -> None:
    pack.add(f"r/{name}", RULE.format(name=name, value=value, table=table), kind="rules")


def test_a_rule_that_overflows_is_unknown_and_the_others_answer(
    maker: RecordingMaker, open_session, pack
) -> None:
    add_rule(pack, "bad", "CAST(max(ts_ns + dur_ns) AS DOUBLE)", "calls")
    add_rule(pack, "good", "CAST(count(*) AS DOUBLE)", "calls")
    found = {f.rule: f for f in open_session(with_duration(maker, MOST - 10**9), pack.library).findings()}
    assert found["r/good"].status == "ok"
    assert found["r/bad"].status == "unknown"
    assert say(found["r/bad"].reason, "en").startswith("This could not be computed: overflow in addition")
    assert say(found["r/bad"].reason, "ja").startswith("計算できませんでした: overflow in addition")


def test_all_rules_that_share_a_summary_say_why_it_could_not_be_counted(
    maker: RecordingMaker, open_session, pack
) -> None:
    for name in "abc":
        add_rule(pack, name, "CAST(max(data_bytes) AS DOUBLE)", "totals")
    add_rule(pack, "good", "CAST(count(*) AS DOUBLE)", "calls")
    found = {f.rule: f for f in open_session(with_bytes(maker), pack.library).diagnose()}
    assert [found[f"r/{name}"].status for name in ("a", "b", "c", "good")] == ["unknown"] * 3 + ["ok"]
    assert len({found[f"r/{name}"].reason for name in "abc"}) == 1
    assert "out of range" in found["r/a"].reason


def test_a_stored_summary_that_cannot_be_added_up_is_counted_from_the_calls(
    maker: RecordingMaker, open_session
) -> None:
    folder = maker.make()
    good = open_session(folder).run("io/summary").rows()
    manifest = json.loads((folder / "recording.json").read_text())
    manifest["tables"]["object_use"] = {"rows": 1, "lost": 0, "parts": [text_part(folder)]}
    (folder / "recording.json").write_text(json.dumps(manifest))
    assert open_session(folder).run("io/summary").rows() == good


def text_part(folder: Path) -> dict:
    """A part of `object_use` whose `calls` is a word."""
    import duckdb
    from make_recording import part_entry
    from sysdock.library import Library

    columns = Library().table("object_use").columns
    values = ", ".join(
        f"'many' AS {c.name}" if c.name == "calls" else f"CAST(NULL AS {c.sql_type}) AS {c.name}"
        for c in columns
    )
    file = folder / "object_use" / "part-0000.parquet"
    file.parent.mkdir()
    duckdb.sql(f"COPY (SELECT {values}) TO '{file}' (FORMAT parquet)")
    return part_entry(folder, file, 1)


@pytest.mark.parametrize("make", [lambda m: with_duration(m, MOST - 10**9), with_bytes])
def test_diagnosis_first_screen_and_info_survive_it(maker: RecordingMaker, open_session, make) -> None:
    session = open_session(make(maker))
    findings = session.diagnose()
    assert {"ok", "unknown"} & {finding.status for finding in findings}
    assert any("could not be computed" in finding.reason for finding in findings)
    assert answer_lines(session, None, "en")
    assert info_lines(session, describe(session))


def test_the_first_screen_says_which_table_is_missing(maker: RecordingMaker, open_session) -> None:
    lines = answer_lines(open_session(with_duration(maker, MOST - 10**9)), None, "en")
    at = next(number for number, line in enumerate(lines) if line.startswith("Files by time"))
    assert "could not be computed" in lines[at + 1]


def test_each_format_of_the_report_says_what_could_not_be_computed(
    maker: RecordingMaker, open_session
) -> None:
    session = open_session(with_duration(maker, MOST - 10**9))
    assert "This could not be computed: overflow" in as_text(session, "html")
    assert "could not be computed: overflow" in as_text(session, "md")
    answer = json.loads(as_text(session, "json"))
    failed = [entry for entry in answer["analyses"].values() if "not_computed" in entry]
    assert failed
    assert all(entry["rows"] is None and entry["row_count"] is None for entry in failed)
    assert any(entry["rows"] for entry in answer["analyses"].values() if "not_computed" not in entry)


def test_info_says_what_could_not_be_computed_and_never_that_there_is_none(
    maker: RecordingMaker, open_session
) -> None:
    folder = maker.make(
        import_issues=[{"source": "t.log", "line": 1, "issue": "unknown line", "understood": True}]
    )
    damage(folder, "import_issues")
    session = open_session(folder)
    described = describe(session)
    assert described["damage"]
    lines = info_lines(session, described)
    assert any("import_issues" in line for line in lines)
    assert "no issues in the input" not in lines


def damage(folder: Path, table: str) -> None:
    """Makes the only part of a table something that is no Parquet, with a hash that is right."""
    from make_recording import part_entry

    manifest = json.loads((folder / "recording.json").read_text())
    [part] = manifest["tables"][table]["parts"]
    file = folder / part["file"]
    file.write_bytes(b"not Parquet")
    manifest["tables"][table]["parts"] = [part_entry(folder, file, part["rows"])]
    (folder / "recording.json").write_text(json.dumps(manifest))


def test_a_comparison_says_what_could_not_be_computed(maker: RecordingMaker, open_session) -> None:
    a, b = open_session(maker.make(name="a")), open_session(with_duration(maker, MOST - 10**9))
    found = compare(a, b)
    assert set(found.not_computed) == {"totals", "calls", "files"}
    assert found.not_computed["totals"].place == str(b.recording.folder)
    assert found.totals == {}
