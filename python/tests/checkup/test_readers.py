"""Readers of times: output of `time`, process accounting, tables of jobs."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from accounting_file import old_process, process, write
from sysdock.checkup import accounting
from sysdock.checkup.accounting import find_process, rows
from sysdock.checkup.job_table import find_job, read_jobs
from sysdock.checkup.time_output import read_time_output
from sysdock.errors import UserError


def tool(name: str) -> str:
    """A program of a Debian package, also where /usr/sbin is not on PATH."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not found:
        pytest.skip(f"{name} is not installed (tools/setup dev)")
    return found


# Output of `time`.


@pytest.mark.parametrize(
    ("name", "user", "system", "elapsed"),
    [
        ("job-time-v.log", "0.01", "0.05", "0.42"),
        ("time-p.txt", "0.14", "0.00", "0.21"),
        ("time-bash.txt", "0.134", "0.012", "0.191"),
        ("time-gnu.txt", "0.13", "0.00", "00.15"),
    ],
)
def test_every_form_of_time(real: Path, name: str, user: str, system: str, elapsed: str) -> None:
    job = read_time_output(real / name)
    assert (job.user, job.system, job.real) == (Fraction(user), Fraction(system), Fraction(elapsed))


def test_the_command_of_a_job_log(real: Path) -> None:
    job = read_time_output(real / "job-time-v.log")
    assert job.name == "dd if=/dev/zero of=out3.bin bs=64k count=400 oflag=dsync"
    assert job.real == Fraction("0.42")


def test_the_last_run_of_a_log_counts_and_says_so(real: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text((real / "job-time-v.log").read_text() + "real 7.50\nuser 0.25\nsys 1.00\n")
    job = read_time_output(log)
    assert (job.real, job.user, job.name) == (Fraction("7.5"), Fraction("0.25"), None)
    assert job.remark
    assert "2 outputs" in job.remark.text("en")


def test_time_measures_here_what_it_measured_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    subprocess.run([tool("time"), "-v", "-o", out, "true"], check=True)
    assert read_time_output(out).name == "true"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "no output of `time`"),
        ("nothing here\n", "no output of `time`"),
        ("\tUser time (seconds): 1.0\n", "no output of `time`"),
        ("real 1.0\nuser x1\nsys 0\n", "no output of `time`"),
        ("real 1..0\nuser 1\nsys 0\n", "is not a time"),
        ("a\0b", "binary file"),
    ],
)
def test_logs_without_times(tmp_path: Path, text: str, fact: str) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    with pytest.raises(UserError, match=fact):
        read_time_output(log)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_time_output(tmp_path / "nothing")


# Process accounting.


def dumped(path: Path) -> list[tuple]:
    """What `dump-acct` of the package acct reads: program, user, system, real ticks, pid, ppid."""
    done = subprocess.run([tool("dump-acct"), path], capture_output=True, text=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        comm, version, user, system, real, _uid, _gid, _mem, _io, pid, ppid, *_ = line.split("|")
        ids = (int(pid), int(ppid)) if version == "v3" else (0, 0)
        found.append((comm.strip(), float(user), float(system), float(real), *ids))
    return found


def read(path: Path) -> list[tuple]:
    return [
        (comm.split(b"\0")[0].decode(), user, system, pytest.approx(elapsed, abs=0.5), pid, ppid)
        for pid, ppid, _began, elapsed, user, system, comm in rows(path)
    ]


def test_a_file_of_the_kernel_is_read_as_dump_acct_reads_it(real: Path) -> None:
    found = dumped(real / "pacct")
    assert len(found) == 7
    assert found == read(real / "pacct")


def test_files_of_the_struct_are_read_as_dump_acct_reads_them(tmp_path: Path) -> None:
    records = [process(f"p{n}", 10.0 ** (n / 4), 7**n, system=3 * n, pid=n + 1, ppid=n) for n in range(9)]
    path = write(tmp_path / "v3", records)
    assert dumped(path) == read(path)
    old = write(tmp_path / "v2", [old_process(f"p{n}", 11**n, 5**n) for n in range(10)])
    assert dumped(old) == read(old)


def test_an_accounting_file_written_now(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: turns process accounting on")
    path, running = tmp_path / "pacct", Path("/var/log/account/pacct")
    if running.exists() and running.stat().st_size:
        # Accounting is in use on this machine: what is there by now will do.
        data = running.read_bytes()
        path.write_bytes(data[: len(data) // 64 * 64][-64 * 10_000 :])
        assert dumped(path) == read(path)
        return
    accton = tool("accton")
    path.touch()
    if subprocess.run([accton, path], capture_output=True, check=False).returncode != 0:
        pytest.skip("the kernel has no process accounting")
    try:
        subprocess.run(["sh", "-c", "sleep 0.2"], check=True)
    finally:
        subprocess.run([accton, "off"], capture_output=True, check=True)
    assert "sleep" in {row[0] for row in dumped(path)}
    assert dumped(path) == read(path)


def test_a_program_and_all_that_it_started(real: Path) -> None:
    job = find_process(real / "pacct", "bash")
    assert (job.user, job.system, job.real) == (Fraction(15, 100), Fraction(1, 100), Fraction(19, 100))
    assert job.remark
    assert "4 processes of `bash`" in job.remark.text("en")
    assert find_process(real / "pacct", "20043").name == "gzip"


def test_a_pid_that_was_used_again_is_another_process(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pacct",
        [
            process("old", 100, 50, pid=7, ppid=5, began=1_000),
            process("child", 500, 300, pid=7, ppid=5, began=2_001),
            process("grandchild", 100, 50, pid=9, ppid=7, began=2_002),
            process("job", 1000, 100, pid=5, ppid=1, began=2_000),
            process("later", 100, 50, pid=9, ppid=5, began=3_000),
        ],
    )
    assert find_process(path, "job").user == Fraction(450, 100)


def test_both_byte_orders_and_packed_files(tmp_path: Path) -> None:
    big = write(tmp_path / "big", [process("p", 5000.0, 1234, pid=70000, order=">")])
    assert next(rows(big))[:6] == (70000, 0, 1_700_000_000, 5000.0, 1234, 0)
    packed = tmp_path / "pacct.1.gz"
    packed.write_bytes(gzip.compress(process("p", 5000.0, 1234)))
    assert len(list(rows(packed))) == 1


def test_old_formats_have_their_own_ticks_and_no_children(tmp_path: Path) -> None:
    path = write(tmp_path / "v2", [old_process("p", 1024 * 100, 1024 * 10, ahz=1024)])
    job = find_process(path, "p")
    assert (job.real, float(job.user)) == (pytest.approx(100, rel=1e-3), pytest.approx(10, rel=1e-3))
    assert job.remark
    assert "does not tell which processes it started" in job.remark.text("en")
    # 2^40 ticks do not fit into a comp_t; the comp2_t next to it holds them.
    long = write(tmp_path / "long", [old_process("p", 1 << 40, 1), old_process("p", 5000, 1)])
    assert [row[3] for row in rows(long)] == [1 << 40, 5000]
    first = write(tmp_path / "v1", [old_process("p", 5000, 1, version=1)])
    assert next(rows(first))[3] == 5000


def test_comp_t() -> None:
    assert [accounting.COMP[value] for value in (0, 0x1FFF, 0x2000 | 1024, 0xFFFF)] == [
        0,
        8191,
        8192,
        8191 << 21,
    ]


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"", "an empty accounting file"),
        (b"job,user,real\n1,2,3\n" * 10, "not a process accounting file"),
        (process("a", 1, 1) + process("b", 1, 1)[:40], "40 bytes after record 1"),
        (process("a", 1, 1) + old_process("b", 1, 1), "record 2 has version 2 instead of 3"),
        (gzip.compress(process("a", 1, 1), mtime=0)[:30], "cannot be read"),
    ],
)
def test_broken_accounting_files(tmp_path: Path, content: bytes, fact: str) -> None:
    path = tmp_path / "pacct"
    path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(fact)):
        list(rows(path))


def test_which_process_has_to_be_said(real: Path) -> None:
    with pytest.raises(UserError, match="holds 7 processes"):
        find_process(real / "pacct", None)
    with pytest.raises(UserError, match="no process `nobody`"):
        find_process(real / "pacct", "nobody")


# Tables of jobs.


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    return path


def test_a_table_with_the_worked_examples(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "job,user,system,real,cores,assistant_cores\n"
        'ior,"51,023 ms",0,18:20,3,2\n'
        'hpl,"29,663,089 ms",0,16:40,34,2\n',
    )
    jobs = list(read_jobs(path))
    assert [(job.line, job.job, job.cores, job.assistant_cores) for job in jobs] == [
        (2, "ior", 3, 2),
        (3, "hpl", 34, 2),
    ]
    assert (job := find_job(path, "hpl")).user / 32 / job.real == Fraction(29_663_089, 32_000_000)


def test_sacct_and_headings_with_units(tmp_path: Path) -> None:
    sacct = table(
        tmp_path,
        "JobID|User|UserCPU|SystemCPU|Elapsed|AllocCPUS|End\n7|alice|00:51.023|00:01.000|1-00:18:20|3|2025-03-01T00:00:00\n",
    )
    [job] = read_jobs(sacct)
    assert (job.user, job.real, job.cores) == (Fraction("51.023"), 87500, 3)
    assert job.ended == 1740787200
    units = table(tmp_path, "Job ID\tUser CPU (ms)\tReal time [s]\n1\t320\t1204.94\n")
    [job] = read_jobs(units)
    assert (job.user, job.real, job.cores) == (Fraction("0.32"), Fraction("1204.94"), None)


@pytest.mark.parametrize(
    ("text", "place", "fact"),
    [
        ("", "jobs.csv", "no line with the names"),
        ("job,user\n", "jobs.csv:1", "no column for the real time"),
        ("job,user,real\n1,2,3\n2,x,3\n", "jobs.csv:3", "user: `x` is not a time"),
        ("job,user,real\n1,2\n", "jobs.csv:2", "2 fields instead of 3"),
        ("job,user,real,cores\n1,2,3,many\n", "jobs.csv:2", "`many` is not a number of cores"),
        ("job,user,real,cores,assistant\n1,2,3,2,2\n", "jobs.csv:2", "leave none to compute"),
        ("job,user,real,cores\n1,2,3,0\n", "jobs.csv:2", "at least one"),
    ],
)
def test_broken_tables_name_the_line(tmp_path: Path, text: str, place: str, fact: str) -> None:
    with pytest.raises(UserError, match=fact) as caught:
        list(read_jobs(table(tmp_path, text)))
    assert str(caught.value.place).endswith(place)


def test_which_job_has_to_be_said(tmp_path: Path) -> None:
    two = table(tmp_path, "job,user,real\na,1,2\nb,1,4\n")
    with pytest.raises(UserError, match="holds 2 jobs"):
        find_job(two, None)
    with pytest.raises(UserError, match="no job `c`"):
        find_job(two, "c")
    assert (job := find_job(two, "b")).user / job.real == Fraction(1, 4)
