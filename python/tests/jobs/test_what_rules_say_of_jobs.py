"""What the owner of a job reads at its end: what the rules say, from the answer of the agent."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from make_recording import job_total
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.jobs import epilogue
from sysdock.jobs.epilogue import judged, lines_of


def answer(**more: Any) -> dict[str, Any]:
    """The answer for a job that reads a gigabyte in requests of a kilobyte, and mostly waits for it."""
    total = job_total(7, wait_s=400, reads=1 << 20, cpu_ns=10**9, **more)
    # As the agent writes it: without what is NULL.
    return {"total": {key: value for key, value in total.items() if value is not None}, "files": []}


@pytest.mark.parametrize("name", ["cfd", None])
def test_findings_come_with_reason_and_advice(name: str | None) -> None:
    found = judged(answer(name=name))
    assert [finding.rule for finding in found] == ["jobs/small_requests", "jobs/waiting"]
    text = "\n".join(lines_of(found))
    assert "Job 7 of alice: 1,048,581 reads and writes transfer 1.00 KiB on average" in text
    assert "Give the library larger buffers" in text
    assert "ライブラリ" in "".join(lines_of(judged(answer(), "ja")))


def test_a_healthy_job_gets_no_words() -> None:
    assert judged({"total": job_total(7, wait_s=1), "files": []}) == []
    assert judged({"total": None, "files": []}) == []


def test_names_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in "".join(lines_of(judged(answer(user="\x1b[31mroot"))))


def test_an_epilogue_does_not_fail_for_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[object]:
        raise UserError("no room for it")

    monkeypatch.setattr("sysdock.recording.native.become_native", lambda *_, **__: 0)
    monkeypatch.setattr(epilogue, "findings_of_job", fail)
    done = CliRunner().invoke(sysdock, ["agent", "print", "--job", "7"])
    assert done.exit_code == 0
    assert "the rules could not be evaluated: no room for it" in done.stderr
