"""`sysdock checkup` and `sysdock threshold`, as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from waiting import wait_for

REAL = Path(__file__).resolve().parents[3] / "testdata" / "checkup"


def steps(text: str) -> list[dict]:
    return json.loads(text)


def test_without_anything_it_says_what_to_give(cli) -> None:
    done = cli("checkup")
    assert done.returncode == 0
    assert "sysdock checkup --time job.log" in done.stdout
    assert "与えてください" in cli("checkup", "--lang", "ja").stdout


@pytest.mark.parametrize(
    ("arguments", "ratio"),
    [
        (["--user", "0.76", "--real", "26:27.30"], "0.000478"),
        (["--user", "320 ms", "--real", "1,204,940 ms"], "0.000265"),
        (["--user", "51,023 ms", "--real", "18:20", "--cores", 3, "--assistant-cores", 2], "0.0463"),
        (["--user", "29,663,089 ms", "--real", "16:40", "--cores", 34, "--assistant-cores", 2], "0.926"),
    ],
)
def test_the_worked_examples(cli, arguments: list, ratio: str) -> None:
    for lang in ("en", "ja"):
        assert f" = {ratio} (" in cli("checkup", *arguments, "--lang", lang).stdout
    step = steps(cli("checkup", *arguments, "--format", "json").stdout)[0]
    assert step["verdict"] == ("ok" if ratio == "0.926" else "look closer")
    if ratio == "0.0463":
        assert f"{step['parts'][0]['values']['ratio']:.3g}" == "0.0464"


def test_a_log_a_table_and_accounting(cli, tmp_path: Path) -> None:
    assert "= 0.0238 " in cli("checkup", "--time", REAL / "job-time-v.log").stdout
    assert "= 0.789 " in cli("checkup", "--acct", REAL / "pacct", "--job", "bash").stdout
    (tmp_path / "jobs.csv").write_text("job,user,real,cores\nhpl,90,100,1\n")
    assert "= 0.900 " in cli("checkup", "--table", "jobs.csv", "--job", "hpl").stdout
    assert "= 0.450 " in cli("checkup", "--table", "jobs.csv", "--cores", 2).stdout


def test_a_recording_alone(cli, maker: RecordingMaker) -> None:
    small = [
        {"t": n / 1e3, "call": "write", "path": "/out", "transferred_bytes": 10, "dur_ns": 900_000}
        for n in range(500)
    ]
    folder = maker.make(small)
    found = steps(cli("checkup", folder, "--format", "json").stdout)
    assert [step["verdict"] for step in found] == ["unknown", "unknown", "look closer", "unknown"]
    assert "--time LOG" in found[0]["parts"][0]["advice"]
    text = cli("checkup", folder).stdout
    assert "Step 3  LOOK CLOSER" in text
    assert "Small requests: /out (could save up to" in text
    assert "ステップ 3  要確認" in cli("checkup", folder, "--lang", "ja").stdout


def test_an_empty_recording_is_never_ok(cli, maker: RecordingMaker) -> None:
    found = steps(cli("checkup", maker.make([]), "--format", "json").stdout)
    assert {step["verdict"] for step in found} == {"unknown"}


def test_load_and_rates(cli, maker: RecordingMaker, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text('[ratio]\nthreshold = 0.02\n[rates."/scratch"]\nread_bytes_s = 1e9\n')
    call = {"call": "read", "path": "/scratch/a", "transferred_bytes": 100 << 20, "dur_ns": 1_000_000_000}
    arguments = ["--site", "site.toml", "--nfsstat", REAL / "nfsstat.before", REAL / "nfsstat.after"]
    arguments += ["--llite", REAL / "llite.before", REAL / "llite.after", "--proc-io", REAL / "proc-io.txt"]
    arguments += ["--sar", REAL / "sar-d.txt", "--sar", REAL / "sar-b.txt", "--time", REAL / "job-time-v.log"]
    found = steps(cli("checkup", maker.make([call]), *arguments, "--format", "json").stdout)
    assert found[0]["verdict"] == "ok"
    topics = [(part["topic"], part["verdict"]) for part in found[1]["parts"]]
    assert topics[1:] == [
        ("rate", "look closer"),
        ("nfs", "look closer"),
        ("llite", "look closer"),
        ("llite", "ok"),
        ("proc_io", "look closer"),
        ("sar", "ok"),
        ("sar", "unknown"),
    ]


# A run of its own.


def test_a_run_keeps_its_streams_and_status(cli) -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); print('remark', file=sys.stderr); sys.exit(7)"
    done = cli("checkup", "--", sys.executable, "-c", code, input="hello")
    assert (done.returncode, done.stdout) == (7, "HELLO")
    assert done.stderr.startswith("remark\nStep 1")


def test_a_run_is_measured(cli) -> None:
    code = (
        "import time, os\n"
        "end = time.process_time() + 0.4\n"
        "while time.process_time() < end: sum(range(100_000))\n"
        "with open('out', 'wb', buffering=0) as f:\n"
        "    for n in range(3000): f.write(b'x' * 10)\n"
    )
    done = cli("checkup", "--format", "json", "--", sys.executable, "-c", code)
    ratio, load = (steps(done.stderr)[place]["parts"][-1] for place in (0, 1))
    assert ratio["values"]["user_s"] >= 0.2
    assert ratio["values"]["real_s"] >= 0.4
    assert load["topic"] == "proc_io"
    # What its own process wrote, exactly.
    assert load["values"]["wchar"] >= 30_000
    assert load["values"]["syscw"] >= 3000
    assert load["verdict"] == "look closer"


def test_options_of_the_command_are_its_own(cli) -> None:
    done = cli("checkup", "--", "echo", "--format", "--", "x")
    assert done.stdout == "--format -- x\n"


def test_a_signal_reaches_the_command_and_its_death_is_the_status(cli) -> None:
    process = cli.start("checkup", "--", "sleep", 30, stderr=subprocess.PIPE)
    wait_for_child(process.pid)
    process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Step 1" in text


def wait_for_child(pid: int) -> None:
    """Until the process runs `sleep`."""

    def runs() -> bool:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # Before its exec it has the name of its parent.
        return bool(children) and Path(f"/proc/{children[0]}/comm").read_text() == "sleep\n"

    wait_for(runs, "sleep")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "/nonexistent/program"], "/nonexistent/program: cannot be started: no such file"),
        (["--"], "no command after `--`"),
        (["--time", "a", "--acct", "b"], "given twice"),
        (["--user", "1"], "needs both times"),
        (["--user", "x", "--real", "1"], "--user: `x` is not a time"),
        (["--user", "1", "--real", "1", "--cores", "2", "--assistant-cores", "2"], "leave none to compute"),
        (["--job", "x"], "--job chooses from a file"),
        (["--hash-names"], "no bundle is made"),
        (["-o", "b.tar.gz"], "no recording"),
        (["--time", "nothing"], "nothing: cannot be read: no such file"),
        (["--site", "nothing"], "nothing: cannot be read: no such file"),
        (["--sar", "."], ".: cannot be read: is a directory"),
        (["nothing"], "nothing: no such recording"),
        (["--translate", "x"], "are needed"),
    ],
)
def test_mistakes_are_explained(cli, arguments: list, words: str) -> None:
    done = cli("checkup", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bundle(cli, maker: RecordingMaker, tmp_path: Path) -> None:
    folder = maker.make()
    done = cli("checkup", folder, "-o", "b.tar.gz", "--hash-names", "--format", "json")
    assert steps(done.stdout)[3]["verdict"] == "ok"
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        archive.extractall(tmp_path / "got", filter="data")
    got = tmp_path / "got" / "checkup"
    assert sorted(file.name for file in got.iterdir()) == [
        "README",
        "checkup.json",
        "diagnosis.json",
        "environment.json",
        "recording",
    ]
    shown = cli("show", got / "recording", "io/files", "--format", "csv")
    assert shown.returncode == 0
    assert "a.txt" not in shown.stdout
    (tmp_path / "answer.txt").write_text(shown.stdout)
    translated = cli("checkup", folder, "--key", "b.tar.gz.key", "--translate", "answer.txt")
    assert "/usr/share/doc/a.txt" in translated.stdout
    again = cli("checkup", folder, "-o", "b.tar.gz")
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


# `sysdock threshold`.


def test_a_threshold_from_a_table(cli, tmp_path: Path) -> None:
    rows = [f"{n},{(0.002 if n % 3 else 0.9) * 100 * (1 + n % 7 / 50)},100,1" for n in range(3000)]
    (tmp_path / "jobs.csv").write_text("job,user,real,cores\n" + "\n".join(rows) + "\n")
    done = cli("threshold", "jobs.csv", "-o", "site.toml", "--rate", "/scratch=read:1e9")
    assert "(computed: two classes" in done.stdout
    site = tomllib.loads((tmp_path / "site.toml").read_text())
    assert 0.01 < site["ratio"]["threshold"] < 0.5
    found = json.loads(cli("threshold", "jobs.csv", "--format", "json").stdout)
    assert found["threshold"] == site["ratio"]["threshold"]
    assert sum(row["share"] for row in found["histogram"]) == pytest.approx(1)
    used = cli("checkup", "--site", "site.toml", "--user", 1, "--real", 100)
    assert "this site's value, from 3,000 records" in " ".join(used.stdout.split())
    next_year = cli("threshold", "jobs.csv", "-o", "next.toml", "--rates-from", "site.toml")
    assert next_year.returncode == 0
    assert tomllib.loads((tmp_path / "next.toml").read_text())["rates"] == site["rates"]


def test_too_few_records_give_the_usual_value(cli) -> None:
    done = cli("threshold", REAL / "pacct", "--min-real", 0)
    assert "Threshold  0.1 (usual value: 7 records are too few" in done.stdout
    assert "しきい値  0.1 (一般的な値" in cli("threshold", REAL / "pacct", "--lang", "ja").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "nothing: cannot be read: no such file"),
        (["site.toml", "-o", "site.toml"], "site.toml: already exists"),
        (["site.toml"], "site.toml:1: no column for the user time"),
        (["site.toml", "--rate", "x"], "`x` states no rate"),
    ],
)
def test_mistakes_of_a_threshold(cli, tmp_path: Path, arguments: list, words: str) -> None:
    (tmp_path / "site.toml").write_text("hello\n")
    done = cli("threshold", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert os.listdir(tmp_path) == ["site.toml"]
