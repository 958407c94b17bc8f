"""The scripts for batch systems that come with sysdock, run as a batch system runs them."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from agents import NATIVE, Agent, rows

SHARE = Path(__file__).resolve().parents[3] / "python/wheel-data/data/share/sysdock"
USER = pwd.getpwnam("nobody")
JOB = "dd if=/dev/zero of={folder}/data bs=1000 count=70 2>/dev/null; rm {folder}/data; echo done by the job"


class Batch:
    """A batch system with one node: runs a job as its user, then the shipped script as root."""

    def __init__(self, folder: Path, agent: Agent) -> None:
        self.agent = agent
        self.folder = folder / "work"
        self.folder.mkdir()
        os.chown(self.folder, USER.pw_uid, USER.pw_gid)
        # Who runs a job must be able to reach its folder.
        for above in (folder, *folder.parents):
            if above.stat().st_mode & 0o001 == 0:
                above.chmod(above.stat().st_mode | 0o011)
        self.output = self.folder / "job.out"
        self.programs = folder / "programs"
        self.programs.mkdir()
        (self.programs / "sysdock-native").symlink_to(NATIVE)
        self.environment = {
            "PATH": f"{self.programs}:/usr/sbin:/usr/bin:/sbin:/bin",
            "SYSDOCK_SPOOL": str(agent.spool),
        }

    def run_job(self, **environment: str) -> None:
        """The job, with what its batch system sets."""
        with open(self.output, "wb") as out:
            os.fchown(out.fileno(), USER.pw_uid, USER.pw_gid)
            subprocess.run(
                ["sh", "-c", JOB.format(folder=self.folder)],
                stdout=out,
                env={"PATH": os.environ["PATH"], **environment},
                user=USER.pw_uid,
                group=USER.pw_gid,
                extra_groups=[],
                check=True,
            )

    def end_slurm_job(self, job: str, **environment: str) -> None:
        """As slurmd runs an Epilog: as root, its output goes nowhere, and another status than 0 drains the node."""
        told = {"SLURM_JOB_ID": job, "SLURM_JOB_USER": USER.pw_name, "SLURM_JOB_UID": str(USER.pw_uid)}
        subprocess.run(
            [SHARE / "slurm/epilog"],
            env={**self.environment, **told, **environment},
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=600,
        )

    def end_pbs_job(self, job: str) -> None:
        """As pbs_mom runs an epilogue: with arguments, its output is appended to the job's."""
        with open(self.output, "ab") as out:
            command = [SHARE / "pbs/epilogue", job, USER.pw_name, "nogroup", "a-name", "4242"]
            subprocess.run(command, env=self.environment, stdout=out, check=True, timeout=600)


@pytest.fixture
def batch(tmp_path: Path, agent: Callable[..., Agent]) -> Batch:
    """With an agent that counts."""
    return Batch(tmp_path, agent("--lake", tmp_path / "lake"))


def look_at_output(batch: Batch, job: str) -> None:
    """It has what the job printed, and what the job did."""
    text = batch.output.read_text()
    assert text.startswith("done by the job\n")
    assert f"sysdock: job {job} " in text
    assert "68.4 KiB" in text, "70,000 bytes"
    assert "1 creates" in text
    assert "1 removes" in text


@pytest.mark.root
class TestSlurm:
    def test_the_output_of_a_job_says_what_it_did(self, batch: Batch) -> None:
        batch.run_job(SLURM_JOB_ID="101", SLURM_JOB_NAME="batch")
        batch.end_slurm_job("101", SLURM_JOB_STDOUT=str(batch.output))
        look_at_output(batch, "101")

    @pytest.mark.parametrize("told", [{}, {"SLURM_JOB_STDOUT": "/tmp/out-%j"}])
    def test_slurm_is_asked_where_it_does_not_say_the_output(
        self, batch: Batch, told: dict[str, str]
    ) -> None:
        controller = batch.programs / "scontrol"
        controller.write_text(
            "#!/bin/sh\n[ \"$1 $2 $3\" = 'show job 102' ] || exit 1\n"
            f"printf 'JobId=102 JobName=batch\\n   StdErr={batch.output}.err\\n   StdOut={batch.output}\\n'\n"
        )
        controller.chmod(0o755)
        batch.run_job(SLURM_JOB_ID="102")
        batch.end_slurm_job("102", **told)
        look_at_output(batch, "102")

    def test_the_path_of_an_output_gives_its_owner_no_more_rights(self, tmp_path: Path, batch: Batch) -> None:
        batch.run_job(SLURM_JOB_ID="103")
        secret = tmp_path / "of-root"
        secret.write_text("as it was\n")
        secret.chmod(0o600)
        fifo = batch.folder / "fifo"
        os.mkfifo(fifo)
        os.chown(fifo, USER.pw_uid, USER.pw_gid)
        link = batch.folder / "link"
        link.symlink_to(secret)
        for output in (secret, link, fifo, batch.folder / "none" / "x", "relative", "/dev/null"):
            batch.end_slurm_job("103", SLURM_JOB_STDOUT=str(output))
        assert secret.read_text() == "as it was\n"
        assert not (batch.folder / "none").exists()

    def test_a_node_is_not_drained_where_nobody_answers(self, tmp_path: Path, batch: Batch) -> None:
        batch.run_job(SLURM_JOB_ID="104")
        batch.environment["SYSDOCK_SPOOL"] = str(tmp_path / "none")
        batch.end_slurm_job("104", SLURM_JOB_STDOUT=str(batch.output))
        assert batch.output.read_text() == "done by the job\n"

    def test_only_root_can_work_outside_its_job(self, batch: Batch) -> None:
        batch.run_job(SLURM_JOB_ID="105", SYSDOCK_OUTSIDE_JOB="1")
        batch.end_slurm_job("105", SLURM_JOB_STDOUT=str(batch.output))
        look_at_output(batch, "105")


@pytest.mark.root
class TestPbs:
    def test_the_output_of_a_job_says_what_it_did(self, batch: Batch) -> None:
        batch.run_job(PBS_JOBID="201.server", PBS_JOBNAME="batch")
        batch.end_pbs_job("201.server")
        look_at_output(batch, "201.server")

    def test_an_unknown_job_changes_nothing(self, batch: Batch) -> None:
        batch.run_job(PBS_JOBID="202.server")
        batch.end_pbs_job("203.server")
        assert batch.output.read_text() == "done by the job\n"


@pytest.mark.root
def test_an_epilogue_is_no_part_of_its_job(tmp_path: Path, batch: Batch) -> None:
    """Its shell has begun with the variables of the job; that is all that counts."""
    for job in ("301", "302"):
        batch.run_job(SLURM_JOB_ID=job)
    asked = [batch.agent.answer("301", "--over", "--format=json").stdout]
    batch.end_slurm_job("302", SLURM_JOB_STDOUT=str(batch.output))
    asked.append(batch.agent.answer("302", "--over", "--format=json").stdout)
    alone, with_epilogue = (json.loads(text)["total"] for text in asked)
    assert with_epilogue["written_bytes"] == alone["written_bytes"]
    # The loader of one shell, which is exec'd again outside of the job.
    assert 0 <= with_epilogue["opens"] - alone["opens"] <= 8
    assert with_epilogue["ended_processes"] == alone["ended_processes"]
    batch.agent.end()
    sql = "SELECT job_id, count(*) FROM job_totals WHERE job_id IN ('301', '302') GROUP BY 1 ORDER BY 1"
    assert rows(tmp_path / "lake", sql) == [("301", 1), ("302", 1)]
