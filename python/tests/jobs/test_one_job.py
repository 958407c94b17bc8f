"""`sysdock jobs show`: a job with its nodes and servers on one clock, and what the rules say of it."""

from __future__ import annotations

from typing import Any

import pytest
from make_recording import STARTED_NS, RecordingMaker, job_total
from sysdock.analysis import Session
from sysdock.jobs.one_job import about_job, lines_of
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.sections import sections_of
from sysdock.sentences import say

STEP_NS = 10 * 10**9


def sample(
    node: str, step: int, group: str, target: str | None, job: str | None, **numbers: int
) -> dict[str, Any]:
    """A row of the lake: the sixth number of its batch is that of its step."""
    sender = {"cluster": "c", "node": node, "agent": f"{node:0>16}", "sequence": step, "interval_ns": STEP_NS}
    whose = {"job_id": job, "user": "alice" if job else None, "name": "cfd" if job else None}
    return {
        **sender,
        **whose,
        "ts_ns": STARTED_NS + step * STEP_NS,
        "counter_group": group,
        "target": target,
        **numbers,
    }


@pytest.fixture
def session(maker: RecordingMaker, library: Library) -> Session:
    """Job 7 on n1 for three steps; n2 runs another one; a server did something for job 7, and later for it alone."""
    calls = dict.fromkeys(
        [
            "reads",
            "writes",
            "opens",
            "creates",
            "closes",
            "stats",
            "readdirs",
            "removes",
            "renames",
            "makes",
            "attributes",
            "syncs",
        ],
        1,
    )
    samples = []
    for step in (1, 2, 3):
        for node, job in (("n1", "7"), ("n2", "8")):
            counted = {**calls, "read_bytes": 1000, "written_bytes": 10, "io_wait_ns": 5, "errors": 0}
            samples.append(
                {**sample(node, step, "files", "/scratch", job, **counted), "file_system": "lustre"}
            )
            used = {
                "read_bytes": 4096,
                "written_bytes": 0,
                "reads": 1,
                "writes": 0,
                "io_wait_ns": STEP_NS // 4 * step,
            }
            samples.append(sample(node, step, "device", "sda", None, **used))
        samples.append(sample("oss1", step, "lustre_server", "OST0", "7", read_bytes=700, written_bytes=10))
    totals = [job_total(7, wait_s=400, reads=1 << 20, cpu_ns=10**9), job_total(8, wait_s=1)]
    folder = maker.write({"job_samples": samples, "job_totals": totals}, recorder="agent", about="jobs")
    return Session(Recording.open(folder), library)


def test_nodes_and_servers_are_in_the_steps_of_the_job(session: Session) -> None:
    found = about_job(session, "7", 0, STARTED_NS + 10 * STEP_NS, 10)
    rows = [
        (row["ts_ns"], row["target"], row["nodes"], row["read_bytes"], row["busy"]) for row in found["nodes"]
    ]
    assert rows == [
        row
        for step in (0, 1, 2)
        for row in (
            (STARTED_NS + step * STEP_NS, "sda", 1, 4096, (step + 1) / 4),
            (STARTED_NS + step * STEP_NS, "OST0", 1, 700, None),
        )
    ]
    assert {row["ts_ns"] for row in found["series"]} == {row["ts_ns"] for row in found["nodes"]}
    text = "\n".join(lines_of(found))
    assert "75%  device sda" in text
    assert "lustre_server OST0" in text


def test_only_findings_about_this_job_are_shown(session: Session) -> None:
    found = about_job(session, "7", 0, STARTED_NS + 10 * STEP_NS, 10)
    assert [each["rule"] for each in found["findings"]] == ["jobs/small_requests", "jobs/waiting"]
    assert "Give the library larger buffers" in "\n".join(lines_of(found))
    assert about_job(session, "8", 0, STARTED_NS + 10 * STEP_NS, 10)["findings"] == []


def test_clients_and_servers_are_matched_by_job(session: Session) -> None:
    rows = {row["job_id"]: row for row in session.run("jobs/servers").dicts()}
    assert (rows["7"]["client_read_bytes"], rows["7"]["server_read_bytes"]) == (3000, 2100)
    assert (rows["7"]["rest_read_bytes"], rows["7"]["rest_written_bytes"]) == (900, 0)
    assert (rows["8"]["servers"], rows["8"]["rest_read_bytes"]) == (0, 3000)


def test_the_first_screen_has_file_systems_and_jobs(session: Session) -> None:
    [section] = [each for each in sections_of(session) if each.about == "jobs"]
    systems, jobs = section.screen(session)
    assert [name for name, _ in systems.rows] == ["/scratch lustre"]
    assert systems.rows[0][1][:3] == ("5.92 KiB", "72", "54")
    assert [name for name, _ in jobs.rows] == ["7", "8"]
    facts = {say(line.name, "en"): say(line.value, "en") for line in section.coverage(session, {})}
    assert facts == {"jobs": "2 in 1 hours", "cluster": "c"}
