"""Load by several hosts: over real ssh, to network namespaces of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import hosts
from load_runs import left
from sampling import some
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.health.nodes import Node
from sysdock.recording import Recording
from sysdock.recording.native import find_native
from sysdock.sentences import fact, facts_from_json, json_of, say
from waiting import children, wait_for

PLAN = """
title = "Small"
title_ja = "小"
text = "A little of everything."
text_ja = "少しずつ。"

[[steps]]
item = "transfer"
processes = 4
length_bytes = 65_536
size_bytes = 8_388_608

[[steps]]
item = "log"
processes = 3
length_bytes = 8192
size_bytes = 1_048_576
time_ns = 300_000_000

[[steps]]
item = "metadata"
processes = 1
files = 50
operations = ["create", "remove"]
"""
LONG = PLAN.replace("time_ns = 300_000_000", "time_ns = 3_600_000_000_000")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], str]]:
    """Two hosts, and how they are reached."""
    with hosts(tmp_path_factory.mktemp("hosts"), 2) as made:
        yield made


def health(folder: Path, nodes: list[str], *options: str, plan: str = PLAN) -> list[str]:
    """The command line of a check of `folder/data` by hosts, into `folder/rec`."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "small.toml").write_text(plan)
    words = [sys.executable, "-m", "sysdock", "health", str(folder / "data"), "-o", str(folder / "rec")]
    words += ["--class", str(folder / "small.toml"), "--no-report", "--lang", "en"]
    return [*words, "--nodes", ",".join(nodes), *options]


def run(words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **more}
    return subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment, check=False)


def ask(folder: Path, sql: str) -> list[tuple[object, ...]]:
    with Session(Recording.open(folder / "rec")) as session:
        return session.fetch(sql)


def generators(data: Path) -> list[int]:
    """The processes that load this directory and have no such parent: the generators themselves."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if len(words) > 3 and words[1] == b"load" and words[2] == os.fsencode(data):
            found[int(entry.name)] = parent
    return [pid for pid, parent in found.items() if parent not in found]


def test_two_hosts_make_one_row(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    done = run(health(tmp_path, nodes, "--launch", launch))
    assert done.returncode == 0, done.stderr
    assert left(tmp_path / "data") == []
    found = ask(tmp_path, "SELECT operation, processes, hosts, errors FROM load_results ORDER BY result_id")
    both = ",".join(nodes)
    assert found == [
        ("write", 4, both, 0),
        ("read", 4, both, 0),
        ("append", 3, both, 0),
        # One process has no part for the second host.
        ("create", 1, nodes[0], 0),
        ("remove", 1, nodes[0], 0),
    ]
    assert (
        ask(tmp_path, "SELECT bytes, operations FROM load_results WHERE item = 'transfer'")
        == [(8 << 20, 128)] * 2
    )
    assert ask(tmp_path, "SELECT operations FROM load_results WHERE item = 'metadata'") == [(50,), (50,)]
    manifest = Recording.open(tmp_path / "rec").manifest
    assert manifest["complete"]
    assert manifest["host"] == both


def test_parts_add_up_to_the_row(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    run(health(tmp_path, nodes, "--launch", launch))
    intervals = """
        SELECT r.bytes = sum(i.bytes), r.operations = sum(i.operations), r.processes = count(DISTINCT i.worker),
            min(i.ts_ns) >= r.started_ns - 1000000, max(i.ts_ns) <= r.ended_ns
        FROM load_results AS r JOIN load_intervals AS i USING (result_id)
        WHERE r.item <> 'metadata' GROUP BY r.result_id, r.bytes, r.operations, r.processes, r.started_ns, r.ended_ns
    """
    assert ask(tmp_path, intervals) == [(True,) * 5] * 3
    latencies = """
        SELECT r.operations = sum(l.operations) FROM load_results AS r JOIN load_latencies AS l USING (result_id)
        GROUP BY r.result_id, r.operations
    """
    assert ask(tmp_path, latencies) == [(True,)] * 5
    rates = "SELECT bool_and(bytes_per_s * (ended_ns - started_ns) / 1e9 <= bytes * 1.0001) FROM load_results WHERE bytes > 0"
    assert ask(tmp_path, rates) == [(True,)]


def test_clocks_are_compared(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    run(health(tmp_path, nodes, "--launch", launch))
    facts = dict(ask(tmp_path, "SELECT name, value FROM environment WHERE section = 'host'"))
    for node in nodes:
        # It is one machine: there is no difference beyond what cannot be told.
        ahead, unsure = str(facts[f"clock of {node}"]).replace(" ms", "").split(", to within ")
        assert abs(float(ahead)) <= float(unsure) + 0.001


def test_a_host_that_is_not_reached(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    nobody = nodes[0][:-1] + "77"
    done = run(health(tmp_path, [nodes[0], nobody], "--launch", launch))
    assert done.returncode == 2
    assert done.stderr.startswith(f"sysdock: {nobody}: ")
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert left(tmp_path / "data") == []
    assert not (tmp_path / "rec").exists()


def test_a_host_without_the_generator(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    done = run(health(tmp_path, nodes, "--launch", launch, "--native", "/nowhere/sysdock-native"))
    assert done.returncode == 2
    assert "/nowhere/sysdock-native" in done.stderr
    assert "--native" in done.stderr
    assert nodes[0] in done.stderr


def test_a_directory_that_a_host_lacks(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    words = health(tmp_path, nodes, "--launch", launch)
    (tmp_path / "data").rmdir()
    done = run(words)
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr


@pytest.mark.parametrize("which", some([0, 1], 2))
def test_a_generator_that_is_killed(tmp_path: Path, two: tuple[list[str], str], which: int) -> None:
    nodes, launch = two
    data = tmp_path / "data"
    words = health(tmp_path, nodes, "--launch", launch, plan=LONG)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(data.glob(".sysdock-load-*/*log*"))) >= 2)
    # Either of the two, because the verb must not wait for one of them only.
    os.kill(sorted(generators(data))[which], signal.SIGKILL)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 2
    assert any(said.startswith(f"sysdock: {node}: ") for node in nodes), said
    # The other one does not go on for the rest of its hour.
    wait_for(lambda: generators(data) == [])
    # What the killed one has left goes with the next load.
    assert len(left(data)) == 1
    assert not Recording.open(tmp_path / "rec").manifest["complete"]
    assert ask(tmp_path, "SELECT operation FROM load_results") == [("write",), ("read",)]
    os.rename(tmp_path / "rec", tmp_path / "first")
    assert run(health(tmp_path, nodes, "--launch", launch)).returncode == 0
    assert left(data) == []


def test_ctrl_c(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    data = tmp_path / "data"
    words = health(tmp_path, nodes, "--launch", launch, plan=LONG)
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: len(list(data.glob(".sysdock-load-*/*log*"))) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "incomplete" in out
    assert "Next: sysdock diagnose" in out
    wait_for(lambda: generators(data) == [])
    assert left(data) == []
    recording = Recording.open(tmp_path / "rec")
    assert (recording.manifest["complete"], recording.ended_by) == (False, "interrupted")
    assert ask(tmp_path, "SELECT operation FROM load_results") == [("write",), ("read",)]


def test_facts_say_whose_they_are(tmp_path: Path, two: tuple[list[str], str]) -> None:
    nodes, launch = two
    done = run(health(tmp_path, nodes, "--launch", launch))
    assert done.returncode == 0, done.stderr
    facts = dict(ask(tmp_path, "SELECT name, value FROM environment WHERE section = 'file system'"))
    assert "type" not in facts
    # Both see one directory. Where all state the same, the summary has it once, and without a name.
    [kind] = {facts[f"type of {node}"] for node in nodes}
    info = run([sys.executable, "-m", "sysdock", "info", str(tmp_path / "rec")], LC_ALL="C.UTF-8").stdout
    said = next(line for line in info.splitlines() if line.startswith("file system"))
    assert said.split() == ["file", "system", kind]


def test_steps_for_which_there_is_no_time_have_rows(tmp_path: Path) -> None:
    head, _, log, metadata = PLAN.split("[[steps]]")
    log = log.replace("300_000_000", "1_500_000_000")
    plan = "[[steps]]".join([f"{head}within_s = 1\n", log, metadata])
    done = run(health(tmp_path, ["here", "there"], "--launch", "sh -c", plan=plan))
    assert done.returncode == 0, done.stderr
    assert "1 step was not begun" in done.stderr
    found = ask(
        tmp_path,
        "SELECT operation, hosts, status, note FROM load_results WHERE item = 'metadata' ORDER BY ALL",
    )
    why = json_of(fact("load/time_up"))
    assert found == [(operation, "here,there", "skipped", why) for operation in ("create", "remove")]


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder on a device that nobody else uses, which would look like progress."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a tmpfs")
    data = tmp_path / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", data], check=True)
    try:
        yield data
    finally:
        subprocess.run(["umount", "-l", data], check=True)


@pytest.mark.more
def test_a_host_whose_workers_hang(tmp_path: Path, in_memory: Path) -> None:
    native = tmp_path / "impatient"
    native.write_text(f'#!/bin/sh\nexec {find_native()} "$@" --patience 3s\n')
    native.chmod(0o755)
    head = PLAN.partition("[[steps]]")[0]
    step = 'item = "metadata"\nprocesses = 2\nfiles = 20\ntime_ns = 8_000_000_000\noperations = ["stat", "remove"]\n'
    data = in_memory
    options = ("--launch", "sh -c", "--native", str(native))
    words = health(tmp_path, ["here", "there"], *options, plan=f"{head}one_host = false\n[[steps]]\n{step}")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(data.glob(".sysdock-load-*/d0/f0-19"))) == 2)
    for worker in children(generators(data)[0]):
        os.kill(worker, signal.SIGSTOP)
    try:
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    [(stat, why), (remove, note)] = ask(tmp_path, "SELECT status, note FROM load_results ORDER BY result_id")
    assert (stat, remove) == ("failed", "skipped")
    said = [say(facts_from_json(str(each)), "en") for each in (why, note)]
    assert re.search("(here|there): given up: no worker and no device made progress", said[0])
    assert re.search("(here|there): not measured: an operation before it was given up", said[1])
    assert left(data) == []


def test_the_hosts_of_a_slurm_job(tmp_path: Path) -> None:
    """srun and scontrol are stand-ins: nothing more than what we ask of them."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "scontrol").write_text(
        '#!/bin/sh\n[ "$*" = "show hostnames n[1-2]" ] && echo n1 && echo n2\n'
    )
    (programs / "srun").write_text(
        f'#!/bin/sh\necho "$4" >> {tmp_path}/asked\n[ "$1 $2 $3" = "-N1 -n1 -w" ] || exit 1\nshift 4\nexec "$@"\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    done = run(health(tmp_path, ["job"]), PATH=path, SLURM_JOB_NODELIST="n[1-2]")
    assert done.returncode == 0, done.stderr
    assert sorted((tmp_path / "asked").read_text().split()) == ["n1", "n2"]
    assert ask(tmp_path, "SELECT DISTINCT hosts FROM load_results WHERE processes > 1") == [("n1,n2",)]


def test_a_host_that_is_named_twice_is_one(tmp_path: Path) -> None:
    # Any program will do that runs the words of a shell.
    done = run(health(tmp_path, ["here", "here", "there"], "--launch", "sh -c"))
    assert done.returncode == 0, done.stderr
    assert ask(tmp_path, "SELECT DISTINCT hosts FROM load_results WHERE processes > 1") == [("here,there",)]


@pytest.mark.parametrize(("options", "mode"), [([], 0o700), (["--share"], 0o755)])
def test_who_may_read_it(tmp_path: Path, options: list[str], mode: int) -> None:
    run(health(tmp_path, ["here", "there"], "--launch", "sh -c", *options))
    modes = {path: path.stat().st_mode & 0o777 for path in [tmp_path / "rec", *(tmp_path / "rec").rglob("*")]}
    assert {found for path, found in modes.items() if path.is_dir()} == {mode}
    assert {found for path, found in modes.items() if path.is_file()} == {mode & 0o666}


def test_fio_is_for_one_host(tmp_path: Path) -> None:
    done = run(health(tmp_path, ["here"], "--engine", "fio"))
    assert done.returncode == 2
    assert "one host only" in done.stderr
    assert not (tmp_path / "rec").exists()


def test_no_job_to_take_hosts_of(tmp_path: Path) -> None:
    done = run(health(tmp_path, ["job"]), SLURM_JOB_NODELIST="", PBS_NODEFILE="")
    assert done.returncode == 2
    assert "no hosts were named" in done.stderr
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize("name", ["-oProxyCommand=touch evil", "a b", "$(touch evil)", "a;b", ""])
def test_a_name_that_is_no_host_never_reaches_its_launcher(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError) as error:
        Node(name, f"touch {tmp_path}/started {{node}}", "native", tmp_path)
    assert error.value.code == "load/no_name_of_a_host"
    assert not (tmp_path / "started").exists()


def test_paths_reach_a_host_as_input_and_never_as_words_of_its_shell(tmp_path: Path) -> None:
    native = tmp_path / "$(touch evil) native"
    native.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n')
    native.chmod(0o755)
    folder = tmp_path / "a'b; touch evil; $(touch evil)"
    node = Node("here", "sh -c", str(native), folder)
    assert node.process.wait(timeout=600) == 0
    node.let_go()
    assert (tmp_path / "arguments").read_text() == f"load\n{folder}\n--agent\n"
    assert not list(tmp_path.glob("evil"))
