"""Lakes: what they say of jobs, merging that is broken off anywhere, damage, and what is no lake."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import fork_server
import pytest
from click.testing import CliRunner, Result
from sampling import some
from small_disk import PAGE, small_disk
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.jobs.generating import generate
from sysdock.jobs.moments import moment_ns, span_ns
from sysdock.recording import Recording, compacting
from sysdock.recording.lake import Lake, days_between, hash_of, is_lake

NODES, STEPS = 6, 360
HOURS = "job_hours/date=2026-01-01/cluster=made-up"
FOLDER = "job_samples/date=2026-01-01/cluster=made-up"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of six nodes with three jobs at a time."""
    lake = tmp_path_factory.mktemp("made") / "lake"
    assert generate(lake, nodes=NODES, jobs=3, hours=2, date="2026-01-01", seed=1) == NODES * STEPS * 2
    return lake


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    """One of the test's own."""
    return Path(shutil.copytree(made, tmp_path / "lake"))


@pytest.fixture
def call() -> Callable[..., Result]:
    """Runs `sysdock` with these words; errors are raised."""

    def run(*words: str | Path) -> Result:
        return CliRunner().invoke(
            sysdock, list(map(str, words)), catch_exceptions=False, standalone_mode=False
        )

    return run


def contents(lake: Path) -> tuple[int, int, int]:
    """Rows, bytes read and the sum of sequences, as any reader of the lake's own parts has them."""
    with Session(Lake.open(lake)) as session:
        [found] = session.fetch("SELECT count(*), sum(read_bytes), sum(sequence) FROM job_samples")
        [by_hour] = session.fetch("SELECT sum(samples), sum(read_bytes) FROM job_hours")
    assert by_hour == found[:2], "the sums by hour are those of the samples"
    return found


def parts(lake: Path) -> list[str]:
    """The tables of the parts that a reader takes."""
    return [part.table for part in Lake.open(lake).lake_parts]


def rewrite(lake: Path, listed: str, parts: int = 1) -> None:
    """Gives parts of the lake footers with another list of batches."""
    for part in sorted((lake / FOLDER).glob("part-*"))[:parts]:
        with duckdb.connect() as connection:
            new = part.with_name("new")
            connection.execute(
                f"COPY (FROM read_parquet('{part}', hive_partitioning=false)) TO '{new}'"
                f" (FORMAT parquet, KV_METADATA {{'sysdock.batches': '{listed}'}})"
            )
        digest = hash_of(new)
        os.rename(new, part.with_name(f"{part.name.rpartition('-')[0]}-{digest[:16]}.parquet"))
        part.unlink()


def top(lake: Path, call: Callable[..., Result], *words: str) -> list[dict[str, object]]:
    """`sysdock jobs top` of the second hour."""
    done = call(
        "jobs",
        "top",
        "--lake",
        lake,
        "--at",
        "2026-01-01T02:00:00+00:00",
        "--last",
        "1h",
        "--format",
        "json",
        *words,
    )
    return json.loads(done.stdout)


class TestQuestions:
    def test_top_is_what_a_plain_sum_gives(self, made: Path, call: Callable[..., Result]) -> None:
        rows = top(made, call, "--by", "bytes")
        begin = 1_767_225_600_000_000_000 + 3_600_000_000_000
        with duckdb.connect() as connection:
            truth = connection.execute(
                f"""SELECT job_id, sum(read_bytes + written_bytes), count(DISTINCT node), sum(io_wait_ns)
                FROM read_parquet('{made}/{FOLDER}/*.parquet') WHERE ts_ns > $begin GROUP BY 1 ORDER BY 2 DESC, 1""",
                {"begin": begin},
            ).fetchall()
        assert [(r["job_id"], r["bytes"], r["nodes"], r["io_wait_ns"]) for r in rows] == truth
        assert sum(r["share"] for r in rows) == pytest.approx(1, abs=1e-4)
        keys = ["job_id", "user", "name", "nodes", "bytes", "operations", "metadata_operations"]
        assert list(rows[0])[:7] == keys

    def test_another_file_system_has_nothing(self, made: Path, call: Callable[..., Result]) -> None:
        words = ("jobs", "top", "--lake", made, "--at", "2026-01-01T02:00:00Z", "--target", "/elsewhere")
        done = call(*words, "--format", "json")
        assert json.loads(done.stdout) == []
        assert "no calls on that file system in that time" in done.stderr

    def test_a_job_is_shown_over_time(self, made: Path, call: Callable[..., Result]) -> None:
        job = str(top(made, call)[0]["job_id"])
        words = ("jobs", "show", job, "--lake", made, "--at", "2026-01-01T02:00:00+00:00", "--last", "1h")
        found = json.loads(call(*words, "--step", "10m", "--format", "json").output)
        assert [row["ts_ns"] % 600_000_000_000 for row in found["series"]] == [0] * 6
        assert sum(row["read_bytes"] for row in found["series"]) > 0
        text = call(*words).output
        assert text.startswith(f"job {job}\n")
        assert "in steps of" in text

    def test_stretches_of_high_load_name_a_job(self, made: Path, call: Callable[..., Result]) -> None:
        words = (
            "jobs",
            "overload",
            "--lake",
            made,
            "--at",
            "2026-01-01T02:00:00Z",
            "--times",
            "1.01",
            "--format",
            "json",
        )
        rows = json.loads(call(*words, "--step", "10m", "--last", "2h").stdout)
        assert rows
        assert all(row["times_usual"] >= 1.01 and 0 < row["job_share"] <= 1 for row in rows)
        jobs = {row["job_id"] for row in top(made, call)}
        assert {row["job_id"] for row in rows} <= jobs
        before = json.loads(call(*words, "--step", "10m", "--last", "10m").stdout)
        assert before == [row for row in rows if row["until_s"] > 6600]

    def test_a_job_that_is_not_there(self, made: Path, call: Callable[..., Result]) -> None:
        with pytest.raises(UserError, match="job 4711: the lake has no data of it"):
            call("jobs", "show", "4711", "--lake", made, "--at", "2026-01-01", "--last", "1h")

    def test_a_time_without_samples_is_said(self, made: Path, call: Callable[..., Result]) -> None:
        done = call("jobs", "top", "--lake", made, "--at", "2026-01-01T10:00:00+00:00", "--format", "json")
        assert json.loads(done.stdout) == []
        assert "the last one before it is 28,800 s older" in done.stderr

    def test_a_lake_opens_as_a_recording(self, made: Path, call: Callable[..., Result]) -> None:
        assert isinstance(Recording.open(made), Lake)
        rows = json.loads(call("show", made, "jobs/series", "-p", "step_s=3600", "--format", "json").output)
        assert len(rows) == 2
        [(number,)] = duckdb.sql(f"SELECT count(*) FROM read_parquet('{made}/**/*.parquet')").fetchall()
        assert number == NODES * STEPS * 2

    def test_only_the_days_that_are_asked_for_are_opened(self, lake: Path) -> None:
        generate(lake, nodes=1, jobs=1, hours=1, date="2026-02-01", seed=1)
        assert Lake.open(lake).rows("job_samples") == NODES * STEPS * 2 + STEPS
        end = moment_ns("2026-02-01T00:30:00+00:00")
        assert Lake.open(lake, days_between(end - span_ns("1m"), end)).rows("job_samples") == STEPS


class TestMerging:
    def test_answers_stay_and_parts_become_one(self, lake: Path, call: Callable[..., Result]) -> None:
        before, rows = contents(lake), top(lake, call)
        done = compacting.compact(lake)
        assert (done.parts_before, done.parts_after, done.rows, done.doubled_rows) == (2, 1, before[0], 0)
        assert (contents(lake), top(lake, call)) == (before, rows)
        assert parts(lake) == ["job_hours", "job_samples"]
        part = Lake.open(lake).lake_parts[1]
        order = duckdb.sql(f"SELECT job_id, node FROM read_parquet('{part.path}')").fetchall()
        assert order == sorted(order)
        again = compacting.compact(lake)
        assert (again.parts_before, again.summed_days) == (0, 0), "there is nothing left to do"

    @pytest.mark.parametrize("table", ["job_samples", "job_hours"])
    def test_a_reader_goes_on(self, lake: Path, table: str) -> None:
        sql = f"SELECT count(*), sum(written_bytes) FROM {table}"
        with Session(Lake.open(lake)) as session:
            before = session.fetch(sql)
            # Another question of a session that has its views, and the first one of another.
            with Session(Lake.open(lake)) as other:
                compacting.compact(lake)
                assert session.fetch(sql) == other.fetch(sql) == before

    def test_names_of_parts_are_read_again_where_a_merge_ends_meanwhile(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, listdir, merges = contents(lake), os.listdir, ["once"]

        def as_if_later(*words: object) -> list[str]:
            names = listdir(*words)
            if merges:
                merges.clear()
                assert compacting.compact(lake).parts_before == 2
            return names

        with monkeypatch.context() as patched:
            patched.setattr("sysdock.recording.lake.os.listdir", as_if_later)
            assert contents(lake) == before

    def test_what_came_twice_is_there_once(self, lake: Path) -> None:
        before = contents(lake)
        first = sorted((lake / FOLDER).iterdir())[0]
        again = first.with_name(first.name.replace("-00000000-0-", "-0000000a-0-"))
        shutil.copy(first, again)
        assert contents(lake)[0] == before[0] + NODES * STEPS
        done = compacting.compact(lake)
        assert (done.doubled_rows, contents(lake)) == (NODES * STEPS, before)

    @pytest.mark.parametrize("step", some(range(14), 2))
    def test_broken_off_anywhere_it_can_be_read_and_goes_on(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch, step: int
    ) -> None:
        before = contents(lake)
        left = step

        def dying(function: Callable[..., object]) -> Callable[..., object]:
            def call(*words: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
                return function(*words, **named)

            return call

        with monkeypatch.context() as patched:
            patched.setattr(compacting.os, "rename", dying(os.rename))
            patched.setattr(compacting.os, "replace", dying(os.replace))
            patched.setattr(Path, "unlink", dying(Path.unlink))
            try:
                compacting.compact(lake)
            except KeyboardInterrupt:
                # However far it came, a reader takes the old parts or the new one.
                assert contents(lake) == before
        compacting.compact(lake)
        assert contents(lake) == before
        assert [path.name for path in (lake / FOLDER).iterdir() if path.name.startswith("_swap")] == []
        assert parts(lake) == ["job_hours", "job_samples"]
        assert len(list((lake / HOURS).glob("part-*"))) == 1

    def test_sums_of_a_day_to_which_more_came_are_counted_anew(
        self, lake: Path, call: Callable[..., Result]
    ) -> None:
        compacting.compact(lake)
        generate(lake, nodes=1, jobs=1, hours=1, date="2026-01-02", seed=2)
        first = contents(lake)[0]
        [part] = (lake / FOLDER).glob("part-*")
        shutil.copy(part, part.with_name(part.name.replace("-merged-", "-0000000b-")))
        assert Lake.open(lake).not_summed("job_hours") == [
            path
            for day in ("01", "02")
            for path in sorted((lake / FOLDER.replace("-01/", f"-{day}/")).glob("part*"))
        ]
        assert contents(lake)[0] == first + NODES * STEPS * 2
        assert "1 parts" not in call("lake", "check", lake).stdout

    def test_sums_outlive_the_samples(self, lake: Path, call: Callable[..., Result]) -> None:
        words = ("jobs", "history", "--lake", lake, "--at", "2026-01-03", "--last", "3d", "--format", "json")
        before = call(*words).stdout
        compacting.compact(lake)
        compacting.compact(lake, keep_days=10)
        assert parts(lake) == ["job_hours"]
        assert call(*words).stdout == before
        with pytest.raises(UserError, match="only its sums are left"):
            call("show", lake, "jobs/history", "--from", "0")
        generate(lake, nodes=1, jobs=1, hours=1, date="2026-01-02", seed=2)
        filtered = call("show", lake, "jobs/history", "--from", "0", "--format", "json")
        assert len(json.loads(filtered.stdout)) == 1
        assert "left out: 1 days of which only sums are left" in filtered.stderr
        shutil.rmtree(lake / "job_samples")
        assert compacting.compact(lake, keep_sums_days=10).removed_days == 1
        assert parts(lake) == []

    def test_samples_are_added_up_before_they_go(self, lake: Path, call: Callable[..., Result]) -> None:
        words = ("jobs", "history", "--lake", lake, "--at", "2026-01-03", "--last", "3d", "--format", "json")
        before = call(*words).stdout
        done = compacting.compact(lake, keep_days=10)
        assert (done.summed_days, done.removed_days) == (1, 1)
        assert parts(lake) == ["job_hours"]
        assert call(*words).stdout == before

    def test_what_came_twice_is_added_up_once_before_it_goes(
        self, lake: Path, call: Callable[..., Result]
    ) -> None:
        words = ("jobs", "history", "--lake", lake, "--at", "2026-01-03", "--last", "3d", "--format", "json")
        before = call(*words).stdout
        first = sorted((lake / FOLDER).iterdir())[0]
        shutil.copy(first, first.with_name(first.name.replace("-00000000-0-", "-0000000a-0-")))
        done = compacting.compact(lake, keep_days=10)
        assert (done.doubled_rows, parts(lake)) == (NODES * STEPS, ["job_hours"])
        assert call(*words).stdout == before

    def test_damaged_samples_that_go_are_reported(self, lake: Path) -> None:
        first = sorted((lake / FOLDER).glob("part-*"))[0]
        first.write_bytes(first.read_bytes()[:-100])
        done = compacting.compact(lake, keep_days=10)
        assert done.damaged == [str(first)]
        assert parts(lake) == ["job_hours"]

    def test_sums_that_would_go_are_not_made(self, lake: Path) -> None:
        done = compacting.compact(lake, keep_days=10, keep_sums_days=10)
        assert (done.summed_days, parts(lake)) == (0, [])

    def test_a_damaged_part_stays_and_is_said(self, lake: Path, call: Callable[..., Result]) -> None:
        parts = sorted((lake / FOLDER).iterdir())
        content = bytearray(parts[0].read_bytes())
        content[1000] ^= 1
        parts[0].write_bytes(content)
        generate_more(lake)
        done = call("lake", "compact", lake)
        assert not (lake / HOURS).exists(), "sums are of whole parts only"
        assert "2 parts became 1" in done.stdout
        assert "damaged, left as it is" in done.stderr
        assert parts[0].exists()

    def test_days_that_are_too_old_go(self, lake: Path) -> None:
        today = datetime.datetime.now(datetime.UTC).date()
        generate(lake, nodes=1, jobs=1, hours=1, date=str(today - datetime.timedelta(days=5)), seed=1)
        done = compacting.compact(lake, keep_days=10, keep_sums_days=10)
        assert done.removed_days == 1
        assert contents(lake)[0] == STEPS
        assert not [path for path in (lake / "job_samples").iterdir() if "2026-01-01" in path.name]

    def test_two_at_a_time_leave_each_other_alone(self, lake: Path) -> None:
        with compacting._alone(lake / FOLDER) as is_alone:
            assert is_alone
            assert compacting.compact(lake).folders == 0


def generate_more(lake: Path) -> None:
    """A third part of the same day."""
    part = sorted((lake / FOLDER).iterdir())[1]
    name = part.name.replace("-00000000-1-", "-0000000b-9-")
    shutil.copy(part, part.with_name(name))


class TestDamage:
    def test_check_names_what_is_damaged(self, lake: Path, call: Callable[..., Result]) -> None:
        assert call("lake", "check", lake).output == "2 parts, 0 damaged\n"
        part = sorted((lake / FOLDER).iterdir())[0]
        part.write_bytes(part.read_bytes()[:-10])
        done = CliRunner().invoke(sysdock, ["lake", "check", str(lake)], standalone_mode=True)
        assert done.exit_code == 2
        assert f"{FOLDER}/{part.name}: its content is not what its name states" in done.output

    def test_a_part_without_a_footer_is_an_error(self, lake: Path, call: Callable[..., Result]) -> None:
        part = sorted((lake / FOLDER).iterdir())[0]
        part.write_bytes(b"PAR1")
        with pytest.raises(UserError, match="table `job_samples` cannot be read"):
            top(lake, call)

    def test_what_is_being_written_is_not_part_of_it(self, lake: Path) -> None:
        before = contents(lake)
        (lake / FOLDER / "_writing-0000000c-1").write_bytes(b"half")
        (lake / "_pending").mkdir()
        (lake / "_pending" / "0123456789abcdef-0000000000000001.json").write_text("{}")
        assert contents(lake) == before

    @pytest.mark.parametrize(
        "text",
        [
            "{",
            '{"remove": ["../../x"], "add": []}',
            "{}",
            "[]",
            '{"remove": 1, "add": [2]}',
            "[" * 100_000,
            "\udcff",
        ],
    )
    def test_a_damaged_swap_is_said_and_repaired(
        self, lake: Path, call: Callable[..., Result], text: str
    ) -> None:
        before = contents(lake)
        (lake / FOLDER / "_swap.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(UserError, match=r"not JSON|names of parts") as raised:
            Lake.open(lake)
        assert raised.value.hint == "`sysdock lake compact` repairs it"
        # As the hint says.
        call("lake", "compact", lake)
        assert contents(lake) == before

    @pytest.mark.root
    def test_a_full_disk_is_an_error_and_loses_nothing(
        self, made: Path, tmp_path: Path, call: Callable[..., Result]
    ) -> None:
        size = sum(path.stat().st_blocks * 512 for path in made.rglob("*"))
        with small_disk(tmp_path / "disk", size + 40 * PAGE) as disk:
            lake = Path(shutil.copytree(made, disk / "lake"))
            (disk / "rest").write_bytes(b"x" * (30 * PAGE))
            before = sum(part.rows for part in Lake.open(lake).lake_parts)
            with pytest.raises(UserError, match=r"cannot be merged: .*[Nn]o space left"):
                call("lake", "compact", lake)
            assert sum(part.rows for part in Lake.open(lake).lake_parts) == before
            assert not list(lake.rglob("_merging-*"))

    @pytest.mark.parametrize("listed", ["[]", '{"a": 1}', '{"a": [[1]]}', '{"a": [["x", 2]]}', "[" * 10_000])
    def test_a_hostile_footer_is_an_error(self, lake: Path, call: Callable[..., Result], listed: str) -> None:
        rewrite(lake, listed)
        with pytest.raises(UserError, match="list of batches"):
            call("lake", "compact", lake)

    def test_ranges_without_an_end_take_no_memory(self, lake: Path, call: Callable[..., Result]) -> None:
        before = Lake.open(lake).lake_parts
        rewrite(lake, json.dumps({"nobody": [[0, 2**61]]}), 2)
        call("lake", "compact", lake)
        assert sum(part.rows for part in Lake.open(lake).lake_parts if part.table == "job_samples") == sum(
            part.rows for part in before if part.table == "job_samples"
        )

    def test_names_that_are_none_are_left_or_refused(self, lake: Path) -> None:
        before = contents(lake)
        (lake / "job_samples" / "date=2026-02-30" / "cluster=x").mkdir(parents=True)
        assert contents(lake) == before
        os.mkdir(os.fsencode(lake / "job_samples" / "date=2026-01-01") + b"/cluster=\xff")
        with pytest.raises(UserError, match="not text in UTF-8"):
            Lake.open(lake)

    @pytest.mark.root
    def test_root_merges_as_the_owner(self, lake: Path, tmp_path: Path) -> None:
        for path in [lake, *lake.rglob("*")]:
            os.chown(path, 65534, 65534)
        done = fork_server.run("lake", "compact", lake)
        assert done.returncode == 0, done.stderr
        assert {path.stat().st_uid for path in lake.rglob("part-*")} == {65534}

    def test_a_link_is_no_part(self, lake: Path) -> None:
        part = sorted((lake / FOLDER).iterdir())[0]
        target = lake.parent / "elsewhere.parquet"
        part.rename(target)
        part.symlink_to(target)
        with pytest.raises(UserError, match="not a plain file"):
            Lake.open(lake)


class TestNoLake:
    def test_other_folders_are_refused(self, tmp_path: Path, call: Callable[..., Result]) -> None:
        assert not is_lake(tmp_path)
        for words in (
            ["lake", "check", tmp_path],
            ["jobs", "top", "--lake", tmp_path],
            ["lake", "compact", tmp_path],
        ):
            with pytest.raises(UserError, match="this is not a lake"):
                call(*words)

    @pytest.mark.parametrize(
        ("text", "fact"),
        [('{"format": 2}', "newer than"), ("{}", "does not identify"), ("[", "does not identify")],
    )
    def test_a_lake_of_another_form(self, lake: Path, text: str, fact: str) -> None:
        (lake / "lake.json").write_text(text)
        with pytest.raises(UserError, match=fact):
            Lake.open(lake)

    def test_times_are_understood_or_refused(self) -> None:
        assert moment_ns("2026-01-01T00:00:00Z") == 1_767_225_600_000_000_000
        assert (span_ns("90"), span_ns("2h"), span_ns("1.5d")) == (90 * 10**9, 7200 * 10**9, 129_600 * 10**9)
        for text in ("yesterday", "2026-13-01"):
            with pytest.raises(UserError, match="is not a time"):
                moment_ns(text)
        for text in ("0s", "1w", "-1m", ""):
            with pytest.raises(UserError, match="is not a length of time"):
                span_ns(text)

    def test_a_day_is_not_made_up_twice(self, lake: Path) -> None:
        with pytest.raises(UserError, match="this day is there already"):
            generate(lake, nodes=1, jobs=1, hours=1, date="2026-01-01", seed=1)
