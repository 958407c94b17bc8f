"""Step 2, load: NFS, Lustre, /proc/PID/io and sysstat, on real files and on broken ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sysdock.checkup.counters import NFS3, NFS4, read_llite, read_nfs, read_proc_io
from sysdock.checkup.load import Period, load_parts, load_tables
from sysdock.checkup.observed import observed
from sysdock.checkup.statement import Part
from sysdock.checkup.sysstat import read_sysstat
from sysdock.checkup.user_input import Given
from sysdock.errors import UserError


def judged(during: Period | None = None, **files: object) -> list[Part]:
    """What the rules say of these files."""
    given = Given(**files)
    with observed(load_tables(given)) as session:
        return load_parts(session, given, during)


def of_nfs(before: Path, after: Path) -> Part:
    [part] = judged(nfsstat=(before, after))
    return part


def of_lustre(before: Path, after: Path) -> tuple[Part, Part]:
    """Small requests, and metadata."""
    requests, metadata = judged(llite=(before, after))
    return requests, metadata


def of_disks(path: Path, during: Period | None = None) -> Part:
    [part] = judged(during, sar=(path,))
    return part


def test_nfsstat_and_the_kernel_file_say_the_same(real: Path) -> None:
    """`nfsstat` printed its files from the others, so its names stand for their places."""
    for moment in ("before", "after"):
        printed, kernel = read_nfs(real / f"nfsstat.{moment}"), read_nfs(real / f"rpc-nfs.{moment}")
        assert (printed.calls, printed.retrans) == (kernel.calls, kernel.retrans)
        assert {name for name in kernel.procedures if name not in printed.procedures} <= {
            f"v4 procedure {place}" for place in range(100)
        }
        for name, count in printed.procedures.items():
            assert kernel.procedures[name] == count, name
    assert (len(NFS3), NFS4[:5]) == (22, ["null", "read", "write", "commit", "open"])


def test_calls_that_are_sent_again(real: Path) -> None:
    part = of_nfs(real / "nfsstat.before", real / "nfsstat.after")
    assert part.verdict == "look closer"
    assert (part.values["calls"], part.values["retrans"], part.values["share"]) == (60_000, 1500, 2.5)
    assert "v3 getattr 10000" in part.text("en")
    assert "(2.5 %)" in part.text("en")
    assert "1,500" in part.text("ja")


def test_nothing_counted_is_unknown(real: Path) -> None:
    assert of_nfs(real / "nfsstat.after", real / "nfsstat.after").verdict == "unknown"
    parts = of_lustre(real / "llite.after", real / "llite.after")
    assert [part.verdict for part in parts] == ["unknown", "unknown"]


def test_few_calls_sent_again_are_ok(tmp_path: Path) -> None:
    before, after = tmp_path / "a", tmp_path / "b"
    before.write_text("rpc 0 0 0\nproc3 2 0 0\n")
    after.write_text("rpc 1000 1 1000\nproc3 2 0 1000\n")
    assert of_nfs(before, after).verdict == "ok"


def test_snapshots_the_wrong_way_round(real: Path) -> None:
    with pytest.raises(UserError, match="smaller than before"):
        of_nfs(real / "nfsstat.after", real / "nfsstat.before")
    with pytest.raises(UserError, match="smaller than before"):
        of_lustre(real / "llite.after", real / "llite.before")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "no counters of an NFS client"),
        ("Server rpc stats:\ncalls badcalls\n1 2\n", "no counters of an NFS client"),
        ("Client rpc stats:\ncalls      retrans    authrefrsh\n1 2\n", "2 counts below 3 names"),
        ("net 0 0 0 0\nrpc x\n", "not a line of counters"),
        ("net 0 0 0 0\n", "no line `rpc`"),
    ],
)
def test_what_is_not_of_an_nfs_client(tmp_path: Path, text: str, fact: str) -> None:
    path = tmp_path / "nfs"
    path.write_text(text)
    with pytest.raises(UserError, match=fact):
        read_nfs(path)


def test_lustre_requests_that_are_small(real: Path) -> None:
    part, metadata = of_lustre(real / "llite.before", real / "llite.after")
    assert (part.verdict, metadata.verdict) == ("look closer", "ok")
    assert (part.values["requests"], part.values["read_bytes"]) == (50_010, 205_000_000)
    assert metadata.values["metadata"] == 50
    assert read_llite(real / "llite.after").samples["close"] == 4106


def test_lustre_metadata_and_healthy_runs(tmp_path: Path) -> None:
    before, many, large = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    before.write_text("open 0 samples [regs]\n")
    many.write_text("open 5000 samples [regs]\nread_bytes 10 samples [bytes] 1 2 20\n")
    large.write_text("open 50 samples [regs]\nread_bytes 5000 samples [bytes] 1 2 5000000000\n")
    requests, metadata = of_lustre(before, many)
    assert (requests.verdict, metadata.verdict) == ("ok", "look closer")
    assert "metadata" in metadata.advice("en")
    assert [part.verdict for part in of_lustre(before, large)] == ["ok", "ok"]


def test_lustre_metadata_alone(tmp_path: Path) -> None:
    before, after = tmp_path / "a", tmp_path / "b"
    before.write_text("open 0 samples [regs]\n")
    after.write_text("open 50 samples [regs]\n")
    parts = of_lustre(before, after)
    assert [part.verdict for part in parts] == ["ok", "ok"]
    assert parts[0].text("en") == "Lustre: no reads and writes."


@pytest.mark.parametrize("text", ["", "hello\n", "open many samples [regs]\n", "llite.x.stats=\n"])
def test_what_is_not_of_lustre(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stats"
    path.write_text(text)
    with pytest.raises(UserError, match="Lustre"):
        read_llite(path)


def test_proc_io_of_small_reads(real: Path) -> None:
    [part] = judged(proc_io=real / "proc-io.txt")
    assert (part.verdict, part.values["calls"]) == ("look closer", 51_898)


def test_proc_io_of_this_process(tmp_path: Path) -> None:
    copy = tmp_path / "io"
    shutil.copyfile("/proc/self/io", copy)
    assert read_proc_io(copy)["rchar"] > 0


def test_counters_that_no_table_holds(tmp_path: Path) -> None:
    before, after = tmp_path / "a", tmp_path / "b"
    before.write_text("rpc 0 0 0\nproc3 2 0 0\n")
    after.write_text(f"rpc {1 << 64} 1 1000\nproc3 2 0 1000\n")
    with pytest.raises(UserError, match="more than 63 bits"):
        of_nfs(before, after)


@pytest.mark.parametrize("text", ["", "rchar: 1\n", "rchar: x\n", "hello\n"])
def test_what_is_not_proc_io(tmp_path: Path, text: str) -> None:
    path = tmp_path / "io"
    path.write_text(text)
    with pytest.raises(UserError, match=r"in it|not a line"):
        read_proc_io(path)


def test_text_and_json_of_sysstat_say_the_same(real: Path) -> None:
    text = read_sysstat(real / "sar-d.txt")
    disks = [sample for sample in read_sysstat(real / "sadf.json") if sample.device]
    totals = [sample for sample in read_sysstat(real / "sadf.json") if not sample.device]
    plain = [(s.device, s.read_bytes_s, s.written_bytes_s, s.await_ms, s.busy) for s in disks]
    assert [(s.device, s.read_bytes_s, s.written_bytes_s, s.await_ms, s.busy) for s in text] == plain
    blocks = read_sysstat(real / "sar-b.txt")
    assert [(s.read_bytes_s, s.written_bytes_s) for s in blocks] == [
        (s.read_bytes_s, s.written_bytes_s) for s in totals
    ]
    assert blocks[0].written_bytes_s == disks[1].written_bytes_s == 306_496 * 1024


def test_load_of_disks(real: Path) -> None:
    part = of_disks(real / "sadf.json")
    assert (part.verdict, part.values["busy"], part.values["samples"]) == ("ok", 8.8, 3)
    assert "in the whole file" in part.text("en")
    assert of_disks(real / "sar-b.txt").verdict == "unknown"


def test_only_samples_of_the_time_of_the_job_count(real: Path) -> None:
    start = int(datetime(2026, 11, 20, 15, 12, 5, tzinfo=UTC).timestamp()) * 1_000_000_000
    part = of_disks(real / "sadf.json", (start + 200_000_000, start + 800_000_000))
    assert (part.values["samples"], part.values["busy"]) == (1, 0.8)
    assert "during the job" in part.text("en")
    later = start + 1_000_000_000_000
    assert of_disks(real / "sadf.json", (later, later + 1_000_000_000)).verdict == "unknown"


def test_a_disk_at_its_limit(real: Path, tmp_path: Path) -> None:
    content = json.loads((real / "sadf.json").read_text())
    for entry in content["sysstat"]["hosts"][0]["statistics"]:
        entry["disk"][1]["util-percent"] = 97.5
    path = tmp_path / "busy.json"
    path.write_text(json.dumps(content))
    assert of_disks(path).verdict == "look closer"


def test_sysstat_of_this_machine(tmp_path: Path) -> None:
    sadc = Path("/usr/lib/sysstat/sadc")
    if not sadc.exists():
        pytest.skip("sysstat is not installed (tools/setup dev)")
    data = tmp_path / "sa"
    subprocess.run([sadc, "-S", "DISK", "1", "2", data], check=True)
    env = {**os.environ, "LC_ALL": "C"}
    for name, command in {
        "json": ["sadf", "-j", data, "--", "-d", "-b"],
        "disks": ["sar", "-d", "-f", data],
        "blocks": ["sar", "-b", "-f", data],
        "all": ["sar", "-A", "-f", data],
    }.items():
        out = tmp_path / name
        out.write_bytes(subprocess.run(command, capture_output=True, check=True, env=env).stdout)
        assert read_sysstat(out)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"sysstat": 3}',
        '{"sysstat": {"hosts": []}}',
        '{"sysstat": {"hosts": [{"statistics": [{"disk": [{"disk-device": "sda"}]}]}]}}',
        "Linux 6.1 (h) 11/20/26 _x86_64_ (2 CPU)\n",
        "12:00:00 all 3 4\n",
        "12:00:00 DEV tps rkB/s\n12:00:01 sda 1\n",
        "12:00:00 CPU %user\n12:00:01 all 1\n",
        "12:00:00 DEV tps rkB/s wkB/s await %util\n12:00:01 sda 1 nan 1 1 1\n",
        "hello\n",
    ],
)
def test_what_is_not_of_sysstat(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sar"
    path.write_text(text)
    with pytest.raises(UserError, match=r"sar|JSON|samples"):
        read_sysstat(path)
