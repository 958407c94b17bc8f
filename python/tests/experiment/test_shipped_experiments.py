"""The experiments that come with sysdock, in their shortest form: each runs, and gives the rows of its analysis."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlglot
from click.testing import CliRunner
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment import PREPARATIONS, postgres_preparations
from sysdock.experiment.methods import Method, read_methods
from sysdock.experiment.state.postgres import find_programs
from sysdock.experiment.tools import find_tool
from sysdock.library import Library

# They change settings of the machine. Other tests may run at the same time: nearly none of these depends on how fast anything was.
pytestmark = pytest.mark.root


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


def shown(folder: Path, analysis: str, *options: str) -> list[dict]:
    """Rows of an analysis."""
    words = ["show", str(folder), analysis, "--format", "json", *options]
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


@pytest.mark.more
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


@pytest.mark.more
@pytest.mark.usefixtures("needs_root")
def test_the_model_of_a_disk_is_compared_with_a_database(experiment: Callable[..., Path]) -> None:
    need_postgres()
    folder = experiment("disk/diskio", "clients=1", "scale=1", "seconds=1")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    assert [row["scenario"] for row in rows] == ["A/A", "model"]
    # The error of the prediction is what the ratio is more or less than 1.
    assert rows[1]["ratio"] == pytest.approx(
        rows[1]["scenario_median"] / rows[1]["baseline_median"], rel=0.001
    )
    assert min(min(row["baseline_median"], row["scenario_median"]) for row in rows) > 0


@pytest.mark.more
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


@pytest.mark.more
@pytest.mark.usefixtures("needs_root")
def test_each_pattern_gives_a_rate_on_each_file_system(experiment: Callable[..., Path]) -> None:
    need("mkfs.xfs", "mkfs.btrfs")
    # Smaller files are read in less time than the generator takes for a measurement.
    folder = experiment("disk/patterns")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    assert [row["scenario"] for row in rows] == ["A/A", "btrfs", "xfs"] * 11
    assert min(row["scenario_median"] for row in rows) > 0


@pytest.mark.more
@pytest.mark.serial
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
    place = f"{folder}/case-001/nginx_all"
    assert f"nginx -p {place}/ -e stderr -c {place}/configuration &\n" in procedure


@pytest.mark.usefixtures("needs_root")
def test_rows_come_in_by_each_way_and_are_all_there(experiment: Callable[..., Path]) -> None:
    need_postgres()
    folder = experiment("db/load", "rows=700", "settings=default")
    rows = [row for row in shown(folder, "experiment/verdicts") if row["is_primary"]]
    assert [row["scenario"] for row in rows] == ["A/A", "copy_indexed", "many_rows", "one_row", "unlogged"]
    assert {row["rejected"] for row in shown(folder, "experiment/runs")} == {False}


@pytest.mark.more
@pytest.mark.usefixtures("needs_root")
def test_a_database_comes_back_from_each_way_of_saving_it(experiment: Callable[..., Path]) -> None:
    need_postgres()
    need("setpriv")
    folder = experiment("db/restore", "scale=1")
    runs = shown(folder, "experiment/runs")
    # Each restored run was checked: number and sum of the rows.
    assert {row["rejected"] for row in runs} == {False}
    assert len(runs) == 2 * (4 + 5)


@pytest.mark.more
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


def files_of(library: Library, name: str) -> dict[str, str]:
    """The files that an experiment writes."""
    [files] = [
        step.arguments["files"] for step in library.experiment(name).prepare if step.do == "write_files"
    ]
    return files


QUERIES = sorted((Path(__file__).resolve().parents[3] / "knowhow" / "experiments").rglob("*.sql"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_queries_of_experiments_are_sql_of_postgres(path: Path) -> None:
    assert sqlglot.parse(path.read_text(), dialect="postgres")


def test_a_wrong_answer_of_a_query_is_no_success(tmp_path: Path, library: Library) -> None:
    (tmp_path / "check.py").write_text(files_of(library, "db/decision")["check.py"])
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


@pytest.mark.more
@pytest.mark.usefixtures("needs_root")
def test_a_web_shop_has_the_orders_that_it_acknowledged(
    experiment: Callable[..., Path], library: Library
) -> None:
    need_postgres()
    need("java", "javac", "jfr", "taskset")
    jars = [step for step in library.experiment("app/orders").prepare if step.do == "fetch_jars"]
    need(*(tool for step in jars for tool in PREPARATIONS["fetch_jars"].tools(**step.arguments)))
    folder = experiment("app/orders", "mix=mixed", "size=1", "seconds=1", "warm_up_s=1")
    runs = shown(folder, "experiment/runs")
    # Each run was checked: pages, and what the database has.
    assert {row["rejected"] for row in runs} == {False}
    assert len(runs) == 5 + 6
    found = {
        (row["scenario"], row["metric"]): row["scenario_median"]
        for row in shown(folder, "experiment/verdicts")
    }
    scenarios = {scenario for scenario, _ in found}
    assert scenarios == {"A/A", "tuned", "no_pool", "asynchronous", "small_heap"}
    for scenario in scenarios:
        assert 0 < found[scenario, "p50_ns"] <= found[scenario, "p90_ns"] <= found[scenario, "p99_ns"]
        assert found[scenario, "app_cpu_s"] > 0
        # One for each page, and no less: of an order all statements are in one transaction.
        assert found[scenario, "commits"] >= found[scenario, "requests"] > 0
    methods = {
        (row["scenario"], row["method"]): row
        for row in shown(folder, "experiment/methods", "--param", "most=100")
    }
    # The A/A arm is another run of the baseline; each request is one call.
    answers = methods["no_pool", "Orders.answer"]
    assert answers["calls"] == found["no_pool", "requests"]
    assert answers["time_share"] == 1
    assert 0 < methods["no_pool", "Orders.commit"]["calls"] < answers["calls"]
    assert 0 < methods["no_pool", "Orders.connect"]["time_share"] < 1
    results = (folder / "documents" / "results.md").read_text()
    assert "| requests | - | default | Orders.answer |" in results.replace("&lt;", "<")


@pytest.fixture
def shop(tmp_path: Path, library: Library) -> Callable[..., tuple[int, str]]:
    """Has the programs of app/orders check a run: what was answered, and what the database has."""
    for name, text in files_of(library, "app/orders").items():
        (tmp_path / name).write_text(text)
    (tmp_path / "shop.py").write_text(
        "from pathlib import Path\n\n\ndef psql(folder, database, *words):\n"
        "    return Path(folder, 'database').read_text()\n"
    )
    order = {"lines": 2, "quantity": 3, "full_cents": 1000, "cents": 900}
    (tmp_path / "expected.json").write_text(json.dumps({"GET /item?item=1": 77, "POST /order?a=1": order}))

    def check(database: str, **changed: object) -> tuple[int, str]:
        url = "http://127.0.0.1:80"
        run = {
            "due": 5,
            "answered": 5,
            "statuses": {"200": 3, "201": 2},
            "errors": {},
            "urls": [
                {"method": "GET", "url": f"{url}/item?item=1", "answered": 3, "crc32": 77},
                {"method": "POST", "url": f"{url}/order?a=1", "answered": 2, "crc32": None},
            ],
            "sums": {"order-lines": {"answers": 2, "sum": 4}, "order-cents": {"answers": 2, "sum": 1800}},
        }
        (tmp_path / "run.json").write_text(json.dumps({**run, **changed}))
        (tmp_path / "database").write_text(database)
        done = subprocess.run(
            [sys.executable, "check.py", ".", "db"], cwd=tmp_path, capture_output=True, text=True
        )
        return done.returncode, done.stderr.strip()

    return check


def test_an_order_that_is_lost_or_a_wrong_page_is_no_success(shop: Callable[..., tuple[int, str]]) -> None:
    # Orders, their price, lines, quantity, price without discount, what is missing in the stock.
    right = "2,1800,4,6,2000,6"
    assert shop(right) == (0, "")
    lost = shop("1,900,2,3,1000,3")
    assert lost[0] == 1
    assert lost[1].startswith("the database has {'orders': 1, 'cents': 900, 'lines': 2,")
    assert shop("2,1800,4,6,2000,5")[0] == 1
    wrong_page = [{"method": "GET", "url": "http://127.0.0.1:80/item?item=1", "answered": 3, "crc32": 78}]
    assert shop(right, urls=wrong_page) == (1, "GET /item?item=1: 3 answers are not all as expected")
    sums = {"order-lines": {"answers": 2, "sum": 4}, "order-cents": {"answers": 2, "sum": 1799}}
    assert shop(right, sums=sums) == (1, "1799 cents were acknowledged, and 1800 were ordered")
    failed = shop(right, statuses={"200": 3, "201": 1, "500": 1})
    assert failed == (1, "5 requests, and answers {'200': 3, '201': 1, '500': 1}; errors {}")


def test_the_data_of_the_shop_are_the_same_on_every_machine(tmp_path: Path, library: Library) -> None:
    program = tmp_path / "data.py"
    program.write_text(files_of(library, "app/orders")["data.py"])
    subprocess.run([sys.executable, program, tmp_path, "1"], check=True)
    names = ("load.sql", "mixed.requests", "expected.json")
    found = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()[:16] for name in names]
    assert found == ["5e3251347445563e", "ec314afe13eb52eb", "d9cffdf47fab47fa"]
    lines = (tmp_path / "browse.requests").read_text().splitlines()
    assert len(lines) == 2000
    assert not any(line.startswith("POST") for line in lines)


def test_samples_of_flight_recorder_become_methods(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(*names: str) -> dict:
        frames = [
            {"method": {"type": {"name": kind}, "name": name}}
            for kind, name in (each.rsplit(".", 1) for each in names)
        ]
        return {"type": "jdk.ExecutionSample", "values": {"stackTrace": {"frames": frames}}}

    def call(method: str, duration: str) -> dict:
        return {"type": "Call", "values": {"method": method, "duration": duration}}

    events = [
        sample("java/util/HashMap.get", "Orders.answer"),
        sample("Orders.answer"),
        sample("java/util/HashMap.get", "java/util/HashMap.get", "Orders.main"),
        {"type": "jdk.ExecutionSample", "values": {"stackTrace": None}},
        call("Orders.answer", "PT0.0025S"),
        call("Orders.answer", "PT1M0.5S"),
    ]
    (tmp_path / "printed").write_text(json.dumps({"recording": {"events": events}}))
    (tmp_path / "jfr").write_text(f"#!/bin/sh\ncat {tmp_path}/printed\n")
    (tmp_path / "jfr").chmod(0o755)
    (tmp_path / "methods.py").write_text(files_of(library, "app/orders")["methods.py"])
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    subprocess.run([sys.executable, tmp_path / "methods.py", tmp_path], check=True)
    assert read_methods(tmp_path / "methods.csv") == (
        Method("Orders.answer", 2, 60_502_500_000, 1, 2),
        Method("java.util.HashMap.get", None, None, 2, 2),
        Method("Orders.main", None, None, 0, 1),
        Method("all others", None, None, 0, None),
    )


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel of guests; their packages are those of other tests."""
    need("qemu-system-x86_64", "mke2fs", "cc")
    root = Path(__file__).resolve().parents[3]
    sys.path.insert(0, str(root / "tools" / "vmtest.d"))
    from kernels import kernel_of

    packages = root / "target" / "vmtest" / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    (tmp_path / "sysdock").mkdir()
    (tmp_path / "sysdock" / "packages").symlink_to(packages)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return kernel_of("6.1")


def steps_of(folder: Path) -> dict[tuple[str, str], float]:
    """By scenario and metric, that of the baseline as `baseline`; what two runs of it have in common is proven."""
    rows = [row for row in shown(folder, "experiment/verdicts") if row["metric"].endswith("steps")]
    found = {(row["scenario"], row["metric"]): row["scenario_median"] for row in rows}
    return found | {("baseline", row["metric"]): row["baseline_median"] for row in rows}


@pytest.mark.more
def test_instructions_of_web_requests_are_compared(experiment: Callable[..., Path], guests: Path) -> None:
    folder = experiment("itrace/web", f"kernel={guests}")
    assert {row["rejected"] for row in shown(folder, "experiment/runs")} == {False}
    steps = steps_of(folder)
    # From a snapshot, programs execute the same each time.
    for metric in ("user_steps", "library_steps"):
        assert steps["A/A", metric] == steps["baseline", metric]
    assert steps["apache_41518", "kernel_steps"] > steps["baseline", "kernel_steps"]
    assert steps["cgi_shell", "steps"] > steps["cgi_c", "steps"] > steps["apache_41518", "steps"]
    assert steps["nginx_6040", "library_steps"] < steps["baseline", "library_steps"]


@pytest.mark.more
def test_instructions_of_the_kernel_are_compared(experiment: Callable[..., Path], guests: Path) -> None:
    folder = experiment("itrace/kernel", f"kernel={guests}")
    assert {row["rejected"] for row in shown(folder, "experiment/runs")} == {False}
    steps = steps_of(folder)
    for metric in ("user_steps", "library_steps"):
        assert steps["A/A", metric] == steps["baseline", metric]
    # What the journal notes is more work, and a new connection more than a row.
    assert steps["fsync", "kernel_steps"] > steps["overwrite", "kernel_steps"] > 0
    assert steps["connect", "server_steps"] > steps["select", "server_steps"] > 0
    assert steps["baseline", "server_steps"] == 0
