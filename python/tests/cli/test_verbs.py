"""The verbs that read a recording."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from make_recording import STARTED_NS, RecordingMaker, sample_calls
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.sections.coverage import lost_of
from sysdock.sentences import say
from waiting import children, cpu_s, wait_for

ODD = '/tmp/it\'s "<script>"\n,[x]*'
SUMMARY_KEYS = [
    "call",
    "calls",
    "ok",
    "errors",
    "time_ns",
    "avg_ns",
    "min_ns",
    "max_ns",
    "bytes",
    "avg_bytes",
    "min_bytes",
    "max_bytes",
]


@pytest.fixture
def rec(maker: RecordingMaker) -> Path:
    """The sample as a recording."""
    return maker.make()


class TestShow:
    """`sysdock show`."""

    def test_table(self, cli, rec: Path) -> None:
        done = cli("show", rec, "io/summary")
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert lines[0].split() == [
            "call",
            "calls",
            "ok",
            "errors",
            "time",
            "avg",
            "min",
            "max",
            *SUMMARY_KEYS[8:],
        ]
        assert "40.00 µs" in lines[1]

    def test_json_has_the_keys_of_the_header(self, cli, rec: Path) -> None:
        rows = json.loads(cli("show", rec, "io/summary", "--format", "json").stdout)
        assert list(rows[0]) == SUMMARY_KEYS
        assert next(row for row in rows if row["call"] == "read")["time_ns"] == 40_000
        rows = json.loads(cli("show", rec, "io/files", "--format", "json", "--call", "write").stdout)
        assert next(iter(rows[0])) == "path"
        assert rows[0]["path"] == ODD

    def test_csv(self, cli, rec: Path) -> None:
        text = cli("show", rec, "io/files", "--format", "csv", "--raw", "--call", "write").stdout
        [row] = csv.DictReader(io.StringIO(text, newline=""))
        assert (row["path"], row["calls"]) == (ODD, "1")

    def test_a_redirected_file_is_not_truncated(self, cli, rec: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        with open(out, "w") as file:
            file.write("before\n")
            file.flush()
            assert cli.start("show", rec, "io/summary", "--format", "csv", stdout=file).wait() == 0
        assert out.read_text().startswith("before\ncall,calls,")

    def test_filters_and_parameters(self, cli, rec: Path) -> None:
        words = ("show", rec, "io/summary", "--format", "json", "--file", "a.txt", "--only-ok")
        done = cli(*words, "--until", "0.2")
        assert {row["call"]: row["calls"] for row in json.loads(done.stdout)} == {"openat": 1, "read": 1}
        assert cli(*words, "--to", "0.2").stdout == done.stdout, "its earlier name"
        assert "--to" not in cli("show", "--help").stdout
        done = cli("show", rec, "io/calls_over_time", "-p", "interval_s=0.25", "--format", "json")
        assert {row["from_s"] for row in json.loads(done.stdout)} == {0.0, 0.25, 0.5}

    def test_a_long_table_says_how_much_is_left(self, cli, maker: RecordingMaker) -> None:
        calls = [
            {"t": n / 100, "call": "write", "path": f"/tmp/{n:03}", "transferred_bytes": n} for n in range(60)
        ]
        folder = maker.make(calls, name="long")
        done = cli("show", folder, "io/sizes")
        assert len(done.stdout.splitlines()) == 51
        assert done.stderr == "sysdock: 10 more rows; `--limit 0` shows all\n"
        assert len(cli("show", folder, "io/sizes", "--limit", "0").stdout.splitlines()) == 61
        assert len(cli("show", folder, "io/sizes", "--limit", "5").stdout.splitlines()) == 6
        assert len(json.loads(cli("show", folder, "io/sizes", "--format", "json").stdout)) == 60

    def test_nothing_left(self, cli, rec: Path) -> None:
        done = cli("show", rec, "io/summary", "--file", "nowhere", "--format", "json")
        assert done.stdout == "[]\n"
        assert done.stderr == "sysdock: --file nowhere matches no path in this recording\n"

    def test_without_an_analysis_they_are_listed(self, cli, rec: Path) -> None:
        assert "io/summary" in cli("show", rec).stdout

    def test_an_unknown_analysis(self, cli, rec: Path) -> None:
        done = cli("show", rec, "io/sumary")
        assert done.returncode == 2
        assert done.stdout == ""
        hint = "did you mean io/summary or disk/summary or io/stacks?"
        assert done.stderr == f"sysdock: there is no analysis `io/sumary`\n\nhint: {hint}\n"

    def test_what_is_missing_is_said(self, cli, maker: RecordingMaker) -> None:
        folder = maker.make(name="bad", complete=False, ended_by="interrupted", lines_total=10)
        manifest = json.loads((folder / "recording.json").read_text())
        manifest["tables"]["calls"]["lost"] = 4
        (folder / "recording.json").write_text(json.dumps(manifest))
        said = cli("show", folder, "io/summary").stderr
        assert "the recording is incomplete (ended by: interrupted)" in said
        assert "2 lines of the input could not be parsed" in said
        assert "4 events of the table `calls` were lost" in said

    def test_what_a_table_lost_that_is_used_where_there_is_one_is_said(
        self, cli, maker: RecordingMaker
    ) -> None:
        folder = maker.make_waits()
        manifest = json.loads((folder / "recording.json").read_text())
        manifest["tables"]["samples"]["lost"] = 7
        (folder / "recording.json").write_text(json.dumps(manifest))
        said = cli("show", folder, "time/where").stderr
        assert "7 events of the table `samples` were lost" in said
        said = cli("export", folder, "--to", "collapsed", "--of", "cpu", "-o", "-").stderr
        assert "7 events of the table `samples` were lost" in said

    def test_a_reader_that_stops_early(self, cli, maker: RecordingMaker) -> None:
        calls = [
            {"t": n / 1000, "call": "write", "path": "/tmp/" + "x" * 200, "offset_bytes": n}
            for n in range(3000)
        ]
        folder = maker.make([{**call, "transferred_bytes": 1} for call in calls], name="long")
        show = cli.start(
            "show", folder, "io/offsets", "--format", "csv", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert show.stdout
        show.stdout.readline()
        show.stdout.close()
        assert show.stderr
        said = show.stderr.read()
        show.stderr.close()
        assert (show.wait(), said) == (0, "")


class TestInfo:
    """`sysdock info`."""

    def test_json(self, cli, maker: RecordingMaker) -> None:
        issues = [
            {"source": "t.log", "line": line, "issue": "cut", "understood": False, "excerpt": "x"}
            for line in (7, 9)
        ]
        folder = maker.make(import_issues=issues, lines_total=10, issues={"cut": 2})
        told = json.loads(cli("info", folder, "--format", "json").stdout)
        expected = {
            "command": "tar cf /dev/null /usr/share/doc",
            "host": "box",
            "started_ns": STARTED_NS,
            "duration_ns": 700_001_000,
            "lines_total": 10,
            "lines_understood": 8,
            "lost_events": 0,
            "loss_known": True,
            "complete": True,
        }
        assert {key: told[key] for key in expected} == expected
        assert told["tables"]["calls"]["rows"] == 8
        assert told["environment"] == [
            {"section": "host", "name": "hostname", "value": "box", "source": "recorder"}
        ]
        assert told["issues"] == [
            {"issue": "cut", "rows": 2, "understood": False, "places": ["t.log:7", "t.log:9"]}
        ]

    def test_text(self, cli, rec: Path) -> None:
        text = cli("info", rec).stdout
        assert "command      tar cf /dev/null /usr/share/doc" in text
        assert "started      2023-11-14 22:13:20 +0000" in text
        assert "8 of 8 understood (100 %)" in text

    @pytest.mark.parametrize(
        ("about", "kind", "coverage"),
        [
            ("calls", "calls of programs", "lines "),
            ("scan", "scan of a file system", "scanned      unknown"),
            ("experiment", "experiment", None),
        ],
    )
    def test_what_was_broken_off_before_its_first_table_still_says_what_it_is(
        self, cli, maker: RecordingMaker, about: str, kind: str, coverage: str | None
    ) -> None:
        folder = maker.write({}, about=about, complete=False, ended_by="running")
        lines = cli("info", folder).stdout.splitlines()
        assert f"kind         {kind}" in lines
        said = [line for line in lines if line.startswith(("lines ", "events ", "scanned "))]
        assert [line.startswith(coverage) for line in said] == ([True] if coverage else [])
        assert json.loads(cli("info", folder, "--format", "json").stdout)["kind"] == kind.split()[0]

    @pytest.mark.parametrize(
        ("ended_by", "lost", "known"),
        [("interrupted", 0, True), ("running", 0, False), ("input error", 3, False)],
    )
    def test_what_was_lost_is_unknown_of_input_that_has_no_end(
        self, cli, maker: RecordingMaker, ended_by: str, lost: int, known: bool
    ) -> None:
        folder = maker.make(complete=False, ended_by=ended_by, lost_events=lost)
        told = json.loads(cli("info", folder, "--format", "json").stdout)
        assert (told["lost_events"], told["loss_known"]) == (lost, known)
        how = lost_of(Recording.open(folder).captures)
        assert how.code == f"sections/lost_{'exactly' if known else 'at_least' if lost else 'unknown'}"
        [said] = [line for line in cli("info", folder).stdout.splitlines() if line.startswith("lost ")]
        assert said.split(maxsplit=1)[1].startswith("nothing" if known else say(how, "en") + ": ")

    def test_coverage_is_not_rounded_up(self, cli, maker: RecordingMaker) -> None:
        folder = maker.make(lines_total=100_000, lines_understood=99_999)
        assert "99,999 of 100,000 understood (99.9 %)" in cli("info", folder).stdout

    def test_damage_is_shown(self, cli, rec: Path) -> None:
        (rec / "paths" / "part-0000.parquet").unlink()
        done = cli("info", rec)
        assert done.returncode == 0
        assert "DAMAGED      paths/part-0000.parquet: a part of the recording is missing" in done.stdout

    def test_a_name_cannot_steer_the_terminal(self, cli, maker: RecordingMaker) -> None:
        assert "\x1b" not in cli("info", maker.make(command="a\x1b[2Jb")).stdout


class TestDiagnose:
    """`sysdock diagnose`."""

    @pytest.mark.parametrize(("lang", "said"), [("en", "of an experiment"), ("ja", "実験の記録")])
    def test_an_experiment_is_no_matter_of_rules_and_the_command_that_it_names_works(
        self, cli, maker: RecordingMaker, lang: str, said: str
    ) -> None:
        folder = maker.make_experiment("of disks")
        done = cli("diagnose", folder, "--lang", lang, "--fail-on", "unknown")
        first, *commands = done.stdout.splitlines()
        assert (done.returncode, done.stderr) == (0, "")
        assert said in first
        words = [shlex.split(line) for line in commands]
        assert {tuple(each[:3]) for each in words} == {("sysdock", "show", str(folder))}
        shown = {each[3]: json.loads(cli(*each[1:], "--format", "json").stdout) for each in words}
        rows = {
            "disk/cold_reads": 2,
            "experiment/bottlenecks": 1,
            "experiment/causes": 1,
            "experiment/checks": 1,
            "experiment/flame_difference": 0,
            "experiment/methods": 1,
            "experiment/locks": 0,
            "experiment/peak": 2,
        }
        rows |= {"experiment/runs": 20, "experiment/tuning": 2, "experiment/verdicts": 1}
        assert {name: len(found) for name, found in shown.items()} == rows
        as_rows = cli("diagnose", folder, "--lang", lang, "--format", "json")
        assert json.loads(as_rows.stdout) == []
        assert as_rows.stderr.startswith(f"sysdock: {first}\n{commands[0]}")
        report = cli("report", folder, "--lang", lang, "--format", "md", "-o", "-").stdout
        assert first in report
        assert "sysdock show 'of disks' disk/cold_reads" in report

    def test_an_experiment_that_was_broken_off_at_once_has_no_results(
        self, cli, maker: RecordingMaker
    ) -> None:
        folder = maker.write({}, about="experiment", complete=False, ended_by="running")
        done = cli("diagnose", folder)
        assert done.stdout == "This is the recording of an experiment, and it has no results.\n"
        assert "incomplete" in done.stderr

    def failing(self, maker: RecordingMaker) -> Path:
        """A run with 5,000 failing calls, and little else."""
        calls = [
            {
                "t": n / 1000,
                "call": "openat",
                "path": f"/yes/{n}",
                "errno": "EACCES",
                "dur_ns": 900_000,
                "comm": "x",
            }
            for n in range(5000)
        ]
        return maker.make([*sample_calls(), *calls], name="failing")

    def test_json(self, cli, maker: RecordingMaker) -> None:
        rows = json.loads(cli("diagnose", self.failing(maker), "--format", "json").stdout)
        keys = [
            "rule",
            "status",
            "subject",
            "value",
            "limit_value",
            "cost_ns",
            "gain_ns",
            "certainty",
            "certainty_reason",
            "share",
            "share_of",
            "file",
            "process",
            "program",
            "from_s",
            "until_s",
            "part_of",
            "others",
            "reason",
            "title",
            "advice",
        ]
        assert list(rows[0])[: len(keys)] == keys
        assert (rows[0]["rule"], rows[0]["status"]) == ("io/failing_calls", "finding")
        assert isinstance(rows[0]["gain_ns"], int)
        assert rows[0]["advice"]

    def test_text_says_what_to_do(self, cli, maker: RecordingMaker) -> None:
        text = cli("diagnose", self.failing(maker)).stdout
        assert "FINDING" in text
        assert "What to do: " in text
        assert "対策: " in cli("diagnose", self.failing_again(maker), "--lang", "ja").stdout

    def test_what_limits_the_answer_is_in_its_language(self, cli, maker: RecordingMaker) -> None:
        clock = {
            "kind": "order",
            "has_durations": True,
            "note": [{"code": "clock/no_clock"}, {"code": "clock/lines_only"}],
        }
        folder = maker.make(clock=clock, complete=False, ended_by="input error")
        said = cli("diagnose", folder, "--lang", "ja").stderr
        assert "ログに時刻がありません" in said
        assert "記録が不完全です (入力のエラー)" in said
        assert "the log has no timestamps" in cli("diagnose", folder).stderr

    def failing_again(self, maker: RecordingMaker) -> Path:
        return maker.folder / "failing"

    def test_the_language_comes_from_the_locale(self, cli, rec: Path) -> None:
        assert "所見" in cli("diagnose", rec, env={"LC_ALL": "ja_JP.UTF-8"}).stdout
        assert " findings, " in cli("diagnose", rec, env={"LC_ALL": "de_DE.UTF-8"}).stdout

    def test_fail_on(self, cli, maker: RecordingMaker, rec: Path) -> None:
        failing = self.failing(maker)
        incomplete = maker.make(complete=False, name="incomplete")
        for folder, finding, unknown in ((failing, 1, 1), (rec, 0, 0), (incomplete, 0, 1)):
            assert cli("diagnose", folder).returncode == 0
            assert cli("diagnose", folder, "--fail-on", "finding").returncode == finding
            assert cli("diagnose", folder, "--fail-on", "unknown").returncode == unknown


class TestOthers:
    """`query`, `export`, `list`, `new`, and what is common to all."""

    def test_query(self, cli, rec: Path) -> None:
        done = cli("query", rec, "SELECT call, path FROM calls WHERE call = 'write'", "--format", "json")
        assert json.loads(done.stdout) == [{"call": "write", "path": ODD}]
        done = cli("query", rec, "SELECT * FROM calls", "--limit", "2", "--format", "csv", "--call", "read")
        assert len(done.stdout.splitlines()) == 3
        assert done.stderr == "sysdock: only the first 2 rows; `--limit 0` shows all\n"

    def test_an_interrupted_query(self, cli, rec: Path) -> None:
        sql = "SELECT count(*) FROM range(100000000000) AS a WHERE a.range * 3 % 7 = 9"
        asking = cli.start("query", rec, sql, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Longer than it takes to begin.
        wait_for(lambda: any(cpu_s(worker) > 3 for worker in children(asking.pid)), "the query")
        asking.send_signal(signal.SIGINT)
        assert asking.communicate(timeout=600) == ("", "\n")
        assert asking.returncode == 130

    def test_a_terminated_query_leaves_nothing_behind(self, cli, rec: Path, tmp_path: Path) -> None:
        (tmp_path / "tmp").mkdir()
        cli.environment["TMPDIR"] = str(tmp_path / "tmp")
        sql = "SELECT count(*) FROM range(100000000000) AS a WHERE a.range * 3 % 7 = 9"
        asking = cli.start("query", rec, sql, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not list((tmp_path / "tmp").glob("sysdock-*")):
            assert asking.poll() is None
            time.sleep(0.1)
        asking.send_signal(signal.SIGTERM)
        asking.communicate(timeout=600)
        assert asking.returncode == 128 + signal.SIGTERM
        assert not list((tmp_path / "tmp").iterdir())

    def test_a_full_disk(self, cli, rec: Path) -> None:
        with open("/dev/full", "w") as full:
            showing = cli.start(
                "show", rec, "io/summary", "--format", "csv", stdout=full, stderr=subprocess.PIPE
            )
            _, said = showing.communicate(timeout=600)
        assert (showing.returncode, said) == (2, "sysdock: the output: no space left on device\n")

    @pytest.mark.parametrize("output", ["/dev/full", "closed"])
    @pytest.mark.parametrize(
        "arguments",
        [
            ("show", "{rec}", "io/summary"),
            ("show", "{rec}", "io/summary", "--format", "json"),
            ("info", "{rec}"),
            ("diagnose", "{rec}"),
            ("query", "{rec}", "SELECT 1 AS one"),
            ("list",),
        ],
    )
    def test_output_that_cannot_be_written(self, cli, rec: Path, arguments: tuple, output: str) -> None:
        filled = [argument.format(rec=rec) for argument in arguments]
        to = ">&-" if output == "closed" else f">{output}"
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {to}', "sh", *cli.command(*filled)],
            cwd=cli.folder,
            env=cli.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr in (
            "sysdock: the output: no space left on device\n",
            "sysdock: the output: bad file descriptor\n",
        )

    def test_without_standard_error_output_stays_clean(self, cli, tmp_path: Path) -> None:
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *cli.command("info", "nowhere")]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=cli.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")

    def test_a_message_cannot_steer_the_terminal(self, cli) -> None:
        done = cli("info", "a\x1b]0;x\x07")
        assert done.returncode == 2
        assert done.stderr.startswith("sysdock: a\\u001b]0;x\\u0007: no such recording\n")

    def test_a_terminal_without_japanese(self, cli, rec: Path) -> None:
        done = cli("diagnose", rec, "--lang", "ja", env={"PYTHONIOENCODING": "ascii"})
        assert done.returncode == 0
        assert "\\u" in done.stdout

    def test_a_log_without_clock_is_labelled(self, cli, maker: RecordingMaker) -> None:
        rec = maker.make(clock={"kind": "order", "has_durations": False}, name="orderly")
        assert "no timestamps" in cli("show", rec, "io/calls_over_time").stderr
        info = cli("info", rec).stdout
        assert re.search(r"^duration +unknown$", info, re.MULTILINE)

    def test_a_recording_whose_recorder_was_killed(self, cli, maker: RecordingMaker) -> None:
        rec = maker.write({}, started_ns=0, duration_ns=0, complete=False, ended_by="running", lines_total=0)
        info = cli("info", rec).stdout
        for line in ("started +unknown", "duration +unknown", "complete +NO: still running, or .* killed"):
            assert re.search(f"^{line}$", info, re.MULTILINE)
        assert "0 of 0 understood (0 %)" in info

    def test_query_mistake(self, cli, rec: Path) -> None:
        done = cli("query", rec, "SELECT * FROM callz")
        assert done.returncode == 2
        assert done.stderr.startswith("sysdock: query: table with name callz does not exist")
        assert "hint: the tables are busy_loops, call_actions, call_use, calls" in done.stderr

    def test_export(self, cli, rec: Path, tmp_path: Path) -> None:
        done = cli("export", rec, "--to", "csv", "-o", "out", "--until", "0.1")
        assert done.returncode == 0
        assert "out/calls.csv  1 rows" in done.stdout
        done = cli("export", rec, "--to", "csv", "-o", "out")
        assert (done.returncode, done.stdout) == (2, "")
        assert "out: already exists" in done.stderr

    def test_list(self, cli) -> None:
        assert "io/summary" in cli("list").stdout
        rows = json.loads(cli("list", "rules", "--format", "json").stdout)
        assert "io/small_requests" in [row["id"] for row in rows]
        assert all(row["kind"] == "rules" and row["title"] for row in rows)
        assert "calls" in cli("list", "tables").stdout
        assert "bars" in cli("list", "charts").stdout

    def test_new_then_list(self, cli, tmp_path: Path) -> None:
        done = cli("new", "analysis", "io/mine")
        assert done.returncode == 0
        assert (tmp_path / "knowhow" / "analyses" / "io" / "mine.sql").exists()
        listed = cli("list", "analyses", env={"SYSDOCK_KNOWHOW": str(tmp_path / "knowhow")}).stdout
        assert "io/mine  Mine" in listed
        # Tables and charts need not be in the folder too.
        assert "calls" in cli("list", "tables", env={"SYSDOCK_KNOWHOW": str(tmp_path / "knowhow")}).stdout

    @pytest.mark.parametrize("verb", ["info", "show", "diagnose", "report", "query", "export"])
    @pytest.mark.parametrize("state", ["nowhere", "not a recording", "newer", "damaged", "without calls"])
    def test_bad_recordings(self, cli, rec: Path, tmp_path: Path, verb: str, state: str) -> None:
        facts = self.spoil(rec, state)
        arguments = {
            "show": ["io/summary"],
            "query": ["SELECT count(*) FROM calls"],
            "export": ["--to", "csv", "-o", "out"],
        }
        done = cli(verb, "nowhere" if state == "nowhere" else rec, *arguments.get(verb, []))
        assert "Traceback" not in done.stderr
        if (verb in ("info", "diagnose", "export", "report") and state == "without calls") or (
            verb == "info" and state == "damaged"
        ):
            # These answer what can be answered.
            return
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("sysdock: ")
        assert facts in done.stderr

    def spoil(self, rec: Path, state: str) -> str:
        """Spoils the recording; returns what is to be said of it."""
        path = rec / "recording.json"
        manifest = json.loads(path.read_text())
        part = rec / "calls" / "part-0000.parquet"
        if state == "not a recording":
            path.unlink()
        elif state == "newer":
            path.write_text(json.dumps({**manifest, "format_version": 99}))
        elif state == "damaged":
            data = bytearray(part.read_bytes())
            data[len(data) // 2] ^= 0xFF
            part.write_bytes(data)
        elif state == "without calls":
            del manifest["tables"]["calls"]
            path.write_text(json.dumps(manifest))
        return {
            "nowhere": "nowhere: no such recording",
            "not a recording": "has no recording.json",
            "newer": "is newer than this sysdock reads",
            "damaged": "does not match the hash",
            "without calls": "calls",
        }[state]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["shwo", "x"], "unknown verb `shwo`\n\nhint: did you mean show?"),
            (["show"], "missing argument 'REC'\n\nhint: see `sysdock show --help`"),
            (["export", "rec", "-o", "out"], "missing option '--to'. Choose from:\n  parquet,\n  csv,\n"),
            (["show", "x", "y", "--limt", "1"], "no such option"),
            (["show", "x", "y", "--format", "xml"], "invalid value for '--format'"),
            (["run"], "missing argument"),
        ],
    )
    def test_wrong_usage(self, cli, arguments: list[str], said: str) -> None:
        done = cli(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("sysdock: ")
        assert said in done.stderr

    def test_wrong_filters(self, cli, rec: Path) -> None:
        for options, said in (
            (["--from", "soon"], "sysdock: --from: `soon` is not a time"),
            (["--only-ok", "--only-errors"], "leave nothing"),
            (["--file", ""], "--file: an empty filter"),
            (["-p", "x"], "`x` is not NAME=VALUE"),
            (["-p", "x=1"], "has no parameter `x`"),
        ):
            done = cli("show", rec, "io/summary", *options)
            assert done.returncode == 2
            assert said in done.stderr


class TestDiagnoseOneRule:
    """`sysdock diagnose REC RULE -p NAME=VALUE`."""

    @pytest.fixture
    def folder(self, maker: RecordingMaker) -> Path:
        reads = [
            {
                "t": i / 1000,
                "call": "read",
                "path": f"/f{i % 12}",
                "dur_ns": 500_000,
                "transferred_bytes": 100,
            }
            for i in range(2400)
        ]
        return maker.make(reads)

    def test_it_shows_all_its_subjects(self, cli, folder: Path) -> None:
        done = cli("diagnose", folder, "io/small_requests", "-p", "min_calls=100", "--format", "json")
        found = json.loads(done.stdout)
        assert {row["rule"] for row in found} == {"io/small_requests"}
        assert len([row for row in found if row["status"] == "finding"]) == 12
        assert {row["others"] for row in found} == {0}

    def test_a_limit_in_a_sentence_is_the_one_that_was_bound(self, cli, folder: Path) -> None:
        done = cli("diagnose", folder, "processes/gaps", "-p", "min_share=0.5")
        assert done.returncode == 0
        for limit in ("64", "128"):
            said = cli(
                "diagnose", folder, "io/small_requests", "-p", f"small_bytes={limit}", "-p", "min_calls=100"
            )
            assert ("FINDING" in said.stdout) is (limit == "128")

    def test_a_wrong_rule_or_parameter_is_named(self, cli, folder: Path) -> None:
        done = cli("diagnose", folder, "io/small_request")
        assert done.returncode == 2
        assert "did you mean io/small_requests" in done.stderr
        done = cli("diagnose", folder, "io/small_requests", "-p", "nope=1")
        assert done.returncode == 2
        assert "has no parameter `nope`" in done.stderr
        done = cli("diagnose", folder, "-p", "min_calls=1")
        assert done.returncode == 2
        assert "name the rule" in done.stderr


@pytest.mark.parametrize("analysis", ["io/summary", "io/files", "syscalls/latency", "time/waits"])
def test_per_divides_what_adds_up_and_nothing_else(cli, maker: RecordingMaker, analysis: str) -> None:
    folder = maker.make_waits()
    sums = Library().analysis(analysis).sums
    whole, each = (
        json.loads(cli("show", folder, analysis, "--format", "json", "--limit", "3", *words).stdout)
        for words in ([], ["--per", "4"])
    )
    assert whole
    assert len(whole) == len(each)
    for row, part in zip(whole, each, strict=True):
        for name, value in row.items():
            assert part[name] == (value / 4 if name in sums and value is not None else value), name


def test_per_refuses_what_is_no_number_of_units(cli, maker: RecordingMaker) -> None:
    folder = maker.make_waits()
    for units in ("0", "-1", "nan", "inf", "x"):
        assert "not a number of units above 0" in cli("show", folder, "io/summary", "--per", units).stderr
    assert "no requests" in cli("show", folder, "io/summary", "--per", "requests").stderr
    assert "no numbers that add up" in cli("show", folder, "io/offsets", "--per", "2").stderr
    words = ("--per", "2", "--plot", str(folder / "chart.png"))
    assert "not for charts" in cli("show", folder, "io/summary", *words).stderr
