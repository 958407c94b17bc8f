"""Findings of the rules for a job that has just ended, from the data of its node's agent."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sysdock.analysis import Finding, Session
from sysdock.errors import UserError
from sysdock.jobs.one_job import finding_lines
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.native import command_line
from sysdock.recording.writing import add_part, empty_capture, empty_manifest, write_manifest
from sysdock.scratch import scratch_folder


def findings_of_job(options: Mapping[str, object], lang: str = "en") -> list[Finding]:
    """Findings about the job that `agent print` with these options prints; UserError: no agent answers."""
    command = command_line("agent print", {"format": "json", **options})
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(done.stderr.strip() or f"exit status {done.returncode}", place=command[0])
    return judged(json.loads(done.stdout), lang)


def judged(answer: dict[str, Any], lang: str = "en") -> list[Finding]:
    """Findings about the job of an agent's answer: a row of `job_totals`, and some of `job_files`."""
    if not answer["total"]:
        return []
    library = Library()
    with scratch_folder() as made:
        folder = Path(made)
        write_manifest(folder, empty_manifest({}, empty_capture("agent", "samples", "jobs")), lasting=False)
        for name, rows in (("job_totals", [answer["total"]]), ("job_files", answer["files"])):
            columns = [column.name for column in library.table(name).columns]
            # The agent leaves out what is NULL.
            values = [[row.get(column) for column in columns] for row in rows]
            add_part(folder, library, name, values, lasting=False)
        with Session(Recording.open(folder), library) as session:
            return [finding for finding in session.diagnose(lang) if finding.status == "finding"]


def lines_of(findings: Sequence[Finding]) -> list[str]:
    """The findings as text for the output of a job."""
    return [line for finding in findings for line in finding_lines(dataclasses.asdict(finding))]
