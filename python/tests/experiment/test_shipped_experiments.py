"""The experiments that come with sysdock, in their shortest form: each runs, and gives the rows of its analysis."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment import postgres_preparations
from sysdock.experiment.state.postgres import find_programs
from sysdock.experiment.tools import find_tool
from sysdock.library import Library

# They change settings of the machine, and count what it does meanwhile.
pytestmark = [pytest.mark.root, pytest.mark.serial]


@pytest.fixture(autouse=True)
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where experiments note what they change."""
    monkeypatch.setenv("SYSDOCK_STATE", str(tmp_path / "journals"))


@pytest.fixture
def needs_root() -> None:
    """Skips where nothing can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("mounting and settings of the machine need root")


@pytest.fixture
def experiment() -> Iterator[Callable[..., Path]]:
    """Runs an experiment that comes with sysdock for one block, on a busy machine if need be."""

    def run(name: str, *settings: str) -> Path:
        folder = Path(public) / "rec"
        words = [word for setting in settings for word in ("--set", setting)]
        command = ["experiment", "run", name, "-o", str(folder), "--blocks", "1", "--busy", *words]
        CliRunner().invoke(sysdock, command, catch_exceptions=False, standalone_mode=False)
        return folder

    with tempfile.TemporaryDirectory() as public:
        # Servers run as other users.
        os.chmod(public, 0o755)
        yield run


def shown(folder: Path, analysis: str) -> list[dict]:
    """Rows of an analysis."""
    words = ["show", str(folder), analysis, "--format", "json"]
    done = CliRunner().invoke(sysdock, words, catch_exceptions=False, standalone_mode=False)
    return json.loads(done.stdout)


def need(*programs: str) -> None:
    """Skips where a program is missing."""
    if missing := [program for program in programs if find_tool(program) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.mark.usefixtures("needs_root")
def test_tuning_gives_a_row_for_each_scenario_and_puts_the_machine_back(
    experiment: Callable[..., Path],
) -> None:
    before = Path("/proc/sys/vm/dirty_bytes").read_text(), Path("/proc/sys/vm/dirty_ratio").read_text()
    folder = experiment("os/tuning", "write_mib=4", "folders=4", "files=3")
    rows = shown(folder, "experiment/tuning")
    assert [(row["scenario"], row["workload"]) for row in rows[:2]] == [("S0_defaults", "dd"), ("A/A", "dd")]
    assert [row["workload"] for row in rows] == ["dd"] * 11 + ["find"] * 11
    assert {row["runs"] for row in rows} == {1}
    flushes = {
        row["scenario"]: row["scenario_median"]
        for row in shown(folder, "experiment/verdicts")
        if (row["workload"], row["metric"]) == ("dd", "device_flushes")
    }
    # What the scenarios set is in force: without barriers nothing is flushed.
    assert flushes["S2_nobarrier"] == 0
    assert flushes["S1_noatime"] > 0
    after = Path("/proc/sys/vm/dirty_bytes").read_text(), Path("/proc/sys/vm/dirty_ratio").read_text()
    assert after == before


def need_postgres() -> None:
    """Skips where no server of PostgreSQL is installed."""
    if find_programs() is None:
        pytest.skip("needs the server programs of PostgreSQL")
    need("psql")


@pytest.mark.usefixtures("needs_root")
def test_transactions_are_counted_on_each_server(experiment: Callable[..., Path]) -> None:
    need_postgres()
    need("mkfs.xfs")
    folder = experiment("db/tpcb", "clients=2", "scale=1", "seconds=1")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    assert [row["scenario"] for row in rows] == ["A/A", "asynchronous", "tuned", "xfs"]
    assert {row["metric"] for row in rows} == {"tps"}
    assert min(row["scenario_median"] for row in rows) > 0
    environment = (folder / "documents" / "environment.md").read_text()
    assert "shared_buffers, tuned | 1GB" in environment


@pytest.mark.usefixtures("needs_root")
def test_a_server_that_is_not_installed_is_said_with_its_package(
    experiment: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_preparations, "find_programs", lambda: None)
    real = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **path: None if name == "postgres" else real(name, **path)
    )
    with pytest.raises(UserError, match="programs are missing: postgres\n") as raised:
        experiment("db/tpcb")
    assert "apt-get install postgresql" in str(raised.value)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_root")
def test_the_model_of_a_disk_is_compared_with_a_database(experiment: Callable[..., Path]) -> None:
    need_postgres()
    folder = experiment("disk/diskio", "clients=1", "scale=1", "seconds=1")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    assert [row["scenario"] for row in rows] == ["A/A", "model"]
    assert min(min(row["baseline_median"], row["scenario_median"]) for row in rows) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("needs_root")
def test_recorders_are_compared_with_no_recorder(experiment: Callable[..., Path]) -> None:
    need("strace")
    folder = experiment("self/overhead", "calls=2000", "files=10", "processes=2", "loops=1000")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    found = {(row["workload"], row["scenario"]): row["ratio"] for row in rows}
    assert len(found) == 4 * 4
    assert {row["metric"] for row in rows} == {"command_ns"}
    # What strace costs for each call is more than chance on any machine.
    assert found["calls", "strace"] > 2


@pytest.mark.usefixtures("needs_root")
def test_each_pattern_gives_a_rate_on_each_file_system(experiment: Callable[..., Path]) -> None:
    need("mkfs.xfs", "mkfs.btrfs")
    # Smaller files are read in less time than the generator takes for a measurement.
    folder = experiment("disk/patterns")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    assert [row["scenario"] for row in rows] == ["A/A", "btrfs", "xfs"] * 11
    assert min(row["scenario_median"] for row in rows) > 0


@pytest.mark.usefixtures("needs_root")
def test_web_servers_are_asked_for_more_than_they_can_do(experiment: Callable[..., Path]) -> None:
    need("nginx", "apache2", "taskset")
    folder = experiment("web/scalability", "load_percent=50,400")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["scenario"] == "nginx_all"]
    found = {(row["metric"], row["parameters"]): row["baseline_median"] for row in rows}
    assert found["achieved_per_s", "load_percent=50"] > 0
    # Many more are due than are answered, as each case finds first what the server can do.
    assert found["achieved_per_s", "load_percent=400"] < found["due", "load_percent=400"]
    # Servers and their configurations are in the procedure.
    procedure = (folder / "documents" / "procedure.md").read_text()
    assert f"    cat >{folder}/case-001/nginx_all/configuration <<'END'\n    \n    daemon off;\n" in procedure
    assert f"nginx -c {folder}/case-001/nginx_all/configuration &\n" in procedure


@pytest.mark.usefixtures("needs_root")
def test_rows_come_in_by_each_way_and_are_all_there(experiment: Callable[..., Path]) -> None:
    need_postgres()
    folder = experiment("db/load", "rows=700", "settings=default")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    assert [row["scenario"] for row in rows] == ["A/A", "copy_indexed", "many_rows", "one_row", "unlogged"]
    assert {row["rejected"] for row in shown(folder, "experiment/runs")} == {False}


@pytest.mark.usefixtures("needs_root")
def test_a_database_comes_back_from_each_way_of_saving_it(experiment: Callable[..., Path]) -> None:
    need_postgres()
    need("runuser")
    folder = experiment("db/restore", "scale=1")
    runs = shown(folder, "experiment/runs")
    # Each restored run was checked: number and sum of the rows.
    assert {row["rejected"] for row in runs} == {False}
    assert len(runs) == 2 * (4 + 5)


@pytest.mark.usefixtures("needs_root")
def test_the_answers_of_all_22_queries_are_those_of_another_database(experiment: Callable[..., Path]) -> None:
    need_postgres()
    need("tpchgen-cli")
    folder = experiment("db/decision", "size=0.01")
    runs = shown(folder, "experiment/runs")
    assert {row["rejected"] for row in runs} == {False}
    # The block that does not count has no A/A.
    assert len(runs) == 4 + 5
    found = {row["metric"] for row in shown(folder, "experiment/verdicts") if row["baseline_median"]}
    assert {f"q{number:02}_ms" for number in range(1, 23)} <= found
    procedure = (folder / "documents" / "procedure.md").read_text()
    assert f"    cat >{folder}/case-001/q06.sql <<'END'\n    SELECT sum(" in procedure
    assert "-c shared_buffers=1GB" in procedure


def test_a_wrong_answer_of_a_query_is_no_success(tmp_path: Path, library: Library) -> None:
    [files] = [
        step.arguments["files"]
        for step in library.experiment("db/decision").prepare
        if step.do == "write_files"
    ]
    (tmp_path / "check.py").write_text(files["check.py"])
    answers = {"expected": ["a,1.0", ""], "answers": ["a,1.00", ""]}
    for name, lines in answers.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "q01").write_text("".join(f"{line}\n" for line in lines))

    def check() -> tuple[int, str]:
        done = subprocess.run([sys.executable, "check.py", "."], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stderr.strip()

    assert check() == (0, "")
    (tmp_path / "answers" / "q01").write_text("a,1.0001\n\n")
    assert check() == (1, "q01: row 1 is ['a', '1.0001'] and not ['a', '1.0']")
    (tmp_path / "answers" / "q01").write_text("a,1\n")
    assert check() == (1, "q01: 1 rows and not 2")
