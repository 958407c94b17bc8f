"""`check`: pages are documentation, examples and tests in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysdock.analysis import check as check_module
from sysdock.analysis.check import check
from sysdock.analysis.compare import difference, same
from sysdock.errors import UserError
from sysdock.library import Example
from sysdock.library.skeleton import write_skeleton

SQL = """\
-- Calls
-- needs:  calls
-- param:  least BIGINT = 0   At least so many.
-- column: call VARCHAR    Name.
-- column: calls BIGINT    Number.
-- column: share DOUBLE    Part of a third.
SELECT call, count(*) AS calls, count(*) / 3.0 AS share FROM calls
GROUP BY call HAVING count(*) >= $least ORDER BY call
"""
LOG = """\
```strace
1 1700000000.000000 read(3</tmp/a>, "x"..., 4096) = 100 <0.000010>
1 1700000000.001000 read(3</tmp/a>, "", 4096) = 0 <0.000010>
1 1700000000.002000 close(3</tmp/a>) = 0 <0.000010>
```
"""
TABLE = "| call | share |\n|---|---|\n| close | 0.33 |\n| read | 0.667 |\n"


def run(*paths: Path, bless: bool = False) -> tuple[int, int, int, str]:
    """(passed, failed, skipped, all lines)."""
    lines: list[str] = []
    summary = check(paths, bless=bless, report=lambda text, _: lines.append(text))
    return summary.passed, summary.failed, summary.skipped, "\n".join(lines)


def test_an_example_that_holds(pack, native: Path) -> None:
    pack.add("a/x", SQL, f"# Calls\n\n{LOG}\n{TABLE}")
    assert run(pack.root)[:3] == (3, 0, 0)


def test_parameters_of_an_example(pack, native: Path) -> None:
    pack.add("a/x", SQL, f"# Calls\n\n{LOG}\n```params\nleast = 2\n```\n\n| call |\n|---|\n| read |\n")
    assert run(pack.root)[:3] == (3, 0, 0)


ROWS_SQL = """\
-- Faults
-- needs:  file_faults
-- column: path VARCHAR      File.
-- column: tid INTEGER       Thread.
-- column: dur_ns BIGINT     Time [ns].
SELECT path, tid, dur_ns FROM file_faults ORDER BY dur_ns
"""


def test_rows_of_a_table_that_no_log_has(pack, native: Path) -> None:
    rows = "```rows file_faults\nts_ns,dur_ns,tid,path,fault_around_bytes\n1,7,1,/tmp/a,\n1,8,1,,\n```\n"
    table = "| path | tid | dur_ns |\n|---|---|---|\n| /tmp/a | 1 | 7 |\n|  | 1 | 8 |\n"
    pack.add("a/x", ROWS_SQL, f"# Faults\n\n{LOG}\n{rows}\n{table}")
    assert run(pack.root)[1:3] == (0, 0)


@pytest.mark.parametrize(
    ("table", "head", "row", "fact"),
    [
        ("file_faults", "path", "/tmp/b", "the log has no path `/tmp/b`"),
        ("file_faults", "tid", "x", "the log has no tid `x`"),
        ("file_faults", "size", "1", "has no column `size`"),
        ("file_faults", "ts_ns", "1,2", "more cells than the first line"),
        ("file_faults", "ts_ns", "soon", "could not convert"),
        ("faults", "ts_ns", "1", "faults"),
    ],
)
def test_wrong_rows_are_named(pack, native: Path, table: str, head: str, row: str, fact: str) -> None:
    rows = f"```rows {table}\n{head}\n{row}\n```\n"
    pack.add("a/x", ROWS_SQL, f"# Faults\n\n{LOG}\n{rows}\n| path |\n|---|\n")
    _, failed, _, text = run(pack.root)
    assert failed == 1
    assert fact in text


def test_a_difference_is_shown_and_blessed(pack, native: Path) -> None:
    wrong = TABLE.replace("0.667", "0.7").replace("| close | 0.33 |\n", "")
    page = pack.add("a/x", SQL, f"# Calls\n\n{LOG}\n{wrong}\nText after it.\n").with_suffix(".md")
    passed, failed, _, text = run(page)
    assert (passed, failed) == (2, 1)
    assert "+| close | 0.333333 |" in text
    assert run(page, bless=True)[1] == 0
    assert "| close | 0.333333 |\n| read | 0.666667 |\n\nText after it." in page.read_text()
    assert run(page)[:3] == (3, 0, 0)


def test_bless_adds_a_table(pack, native: Path) -> None:
    page = pack.add("a/x", SQL, f"# Calls\n\n{LOG}\nText.\n").with_suffix(".md")
    assert run(page)[1] == 1
    run(page, bless=True)
    assert "| call | calls | share |\n|---|---|---|\n| close | 1 | 0.333333 |" in page.read_text()
    assert run(page)[:3] == (3, 0, 0)


def test_without_the_native_program_examples_are_skipped(pack, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Path:
        raise UserError("not there")

    monkeypatch.setattr(check_module, "find_native", absent)
    pack.add("a/x", SQL, f"# Calls\n\n{LOG}\n{TABLE}")
    passed, failed, skipped, text = run(pack.root)
    assert (passed, failed, skipped) == (2, 0, 1)
    assert "sysdock-native is not there" in text


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("AS calls,", "AS n,", "column 2 is n BIGINT, but the header says calls BIGINT"),
        ("-- needs:  calls", "-- needs:  calls, paths", "names the table paths, which the SQL does not read"),
        ("-- needs:  calls", "-- needs:  paths", "`needs:` lacks the table calls"),
        ("-- needs:  calls", "-- needs:  callz", "there is no table `callz`"),
        (">= $least", ">= 0", "parameter least is not used"),
        (">= $least", ">= $most", "$most has no `param:` line"),
        ("count(*) / 3.0", "median(dur_ns)", "not portable: median()"),
        ("-- param:", "-- chart: nochart x=call\n-- param:", "there is no chart `nochart`"),
        ("-- param:", "-- tags: nonsense\n-- param:", "unknown tag `nonsense`"),
        ("-- param:", "-- colour: red\n-- param:", "unknown header key `colour`"),
        ("FROM calls", "FROM calls WHERE", "syntax error"),
    ],
)
def test_problems_of_a_header(pack, old: str, new: str, problem: str) -> None:
    pack.add("a/x", SQL.replace(old, new), f"# Calls\n\n{LOG}\n{TABLE}")
    _, failed, _, text = run(pack.root)
    assert failed
    assert problem in text


def test_a_page_and_an_example_are_needed(pack) -> None:
    pack.add("a/x", SQL)
    assert "there is no page" in run(pack.root)[3]
    pack.add("a/x", SQL, "# Calls\n")
    assert "no example" in run(pack.root)[3]
    (pack.root / "analyses" / "a" / "x.sql").unlink()
    assert "a page without an .sql file" in run(pack.root)[3]


def test_a_rule_needs_all_headings_and_statuses(pack, native: Path) -> None:
    sql, page = write_skeleton("rule", "a/r", pack.root)
    assert run(sql)[1:3] == (0, 0)
    text = page.read_text()
    page.write_text(text.replace("## 例\n", "").replace("|  | unknown |  |  |\n", ""))
    _, failed, _, said = run(sql)
    assert failed == 2
    assert "no heading `## 例`" in said
    assert "no example shows `unknown`" in said


def test_a_rule_explains_each_certainty(pack, native: Path) -> None:
    sql, page = write_skeleton("rule", "a/r", pack.root)
    text = page.read_text()
    page.write_text(
        text.replace("- medium: each", "- high: each").replace("- medium: 待ち", "- medium.x: 待ち")
    )
    said = run(sql)[3]
    assert "nothing under `## How sure it is` says why it is `medium`" in said
    assert "`## How sure it is`: the rule is never `high`" in said
    assert "`## どれだけ確かか`: no finding has the variant of `medium.x`" in said
    assert "`## どれだけ確かか` has other entries than `## How sure it is`" in said
    page.write_text(text)
    assert run(sql)[1] == 0


def test_a_rule_must_not_pass_an_empty_recording(pack) -> None:
    sql, _ = write_skeleton("rule", "a/r", pack.root)
    sql.write_text(sql.read_text().replace("t.calls = 0 OR ", ""))
    assert "absence of data is never a pass" in run(sql)[3]


@pytest.mark.parametrize(
    ("quantity", "is_known"), [("calls", True), ("duration", True), ("cals", False), ("extents", False)]
)
def test_at_least_names_what_the_rule_needs(pack, quantity: str, is_known: bool) -> None:
    sql, _ = write_skeleton("rule", "a/r", pack.root)
    lines = f"-- param: least BIGINT = 3   Least rows.\n-- at_least: {quantity} least\n-- tags:"
    sql.write_text(sql.read_text().replace("-- tags:", lines))
    wrong = f"at_least: `{quantity}` is neither a time nor a table that the rule needs"
    assert (wrong in run(sql)[3]) != is_known


@pytest.mark.parametrize("kind", ["analysis", "rule"])
def test_what_new_writes_passes(tmp_path: Path, native: Path, kind: str) -> None:
    sql, page = write_skeleton(kind, "io/my_question", tmp_path / "mine")
    passed, failed, skipped, text = run(tmp_path / "mine")
    assert (failed, skipped) == (0, 0), text
    assert passed >= 3
    with pytest.raises(UserError, match="already exists"):
        write_skeleton(kind, "io/my_question", tmp_path / "mine")
    assert page.read_text().startswith("# My question\n")
    assert sql.read_text().startswith("-- My question\n")


@pytest.mark.parametrize("name", ["../x", "IO/x", "io/", "a b", "/etc/x"])
def test_odd_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="is not a name"):
        write_skeleton("analysis", name, tmp_path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(UserError, match="not an analysis, a rule, an experiment or a product"):
        run(tmp_path / "x.txt")
    with pytest.raises(UserError, match="nothing to check there"):
        run(tmp_path)


@pytest.mark.parametrize(
    ("value", "cell", "agree"),
    [
        (None, None, True),
        (None, "0", False),
        (0, None, False),
        (5, "5", True),
        (5, "5.0", False),
        (0.6666, "0.67", True),
        (0.6666, "0.7", True),
        (0.6666, "0.66", False),
        (1e-7, "0.0000001", True),
        (2.0, "2", True),
        (2.0, "two", False),
        (True, "true", True),
        ("", "''", True),
        ("/a", "`/a`", True),
        ("/a", "/b", False),
    ],
)
def test_cells(value: object, cell: str | None, agree: bool) -> None:
    assert same(value, cell) is agree


def test_another_number_of_rows_differs() -> None:
    example = Example("", {}, ["a"], [["1"]], 1)
    assert difference(example, [(1,)]) == []
    assert "+| 2 |" in difference(example, [(1,), (2,)])
    assert "-| 1 |" in difference(example, [])


def test_an_example_that_does_not_end_fails(pack, native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops at the limits of examples, and not at those of the machine."""
    monkeypatch.setattr(check_module, "_FOR_EXAMPLES", {"max_execution_time": "300"})
    many = "SELECT count(*) AS calls FROM (SELECT DISTINCT a.range + b.range FROM range(90000) a, range(90000) b)"
    pack.add(
        "a/x",
        f"-- Many\n-- needs:  calls\n-- portable: false\n-- column: calls BIGINT  All.\n{many}, calls\n",
        f"# Many\n\n{LOG}\n",
    )
    _, failed, _, text = run(pack.root)
    assert failed == 1
    assert "exceeded its time limit" in text


def test_plans_of_loads_are_checked(tmp_path: Path) -> None:
    plan = 'title = "A"\ntitle_ja = "A"\ntext = "A"\ntext_ja = "A"\n[[steps]]\nitem = "control"\n'
    (tmp_path / "health").mkdir()
    good, bad = tmp_path / "health" / "good.toml", tmp_path / "health" / "bad.toml"
    good.write_text(plan)
    bad.write_text(f"{plan}processes = 'many'\n")
    said: list[str] = []
    summary = check([good, bad], report=lambda text, _: said.append(text))
    assert (summary.passed, summary.failed) == (1, 1)
    assert any("FAILED" in text and "plan bad" in text for text in said)
    assert any("a step: `processes` has a value of the wrong type" in text for text in said)
