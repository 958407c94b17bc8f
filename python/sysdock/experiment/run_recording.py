"""The recording of an experiment: it grows block by block, so that what was measured outlives any end."""

from __future__ import annotations

import json
import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import Any

from sysdock import __version__, to_disk
from sysdock.errors import UserError
from sysdock.experiment.chosen import PLAN, applied, read_chosen
from sysdock.experiment.definition import programs_of
from sysdock.experiment.environment import capture as capture_environment
from sysdock.experiment.environment import programs_used
from sysdock.experiment.explaining import Item, Profile
from sysdock.experiment.one_off import as_toml
from sysdock.experiment.results import RunRow
from sysdock.experiment.trust import files_of
from sysdock.library import Experiment, Library
from sysdock.library.environment import EnvironmentSection
from sysdock.library.experiments import parse_experiment
from sysdock.own_folder import created, opened, refuse_replaceable
from sysdock.recording import Recording, connect
from sysdock.recording.appending import append, locked
from sysdock.recording.writing import empty_capture, empty_manifest, write_manifest
from sysdock.sentences import Fact, fact, fact_from_json, json_of

FILE = "experiment.toml"
WHO = "another `sysdock experiment`"
_TABLES = (
    "experiment_cases",
    "experiment_runs",
    "experiment_metrics",
    "experiment_profiles",
    "experiment_stacks",
    "experiment_methods",
    "experiment_facts",
    "experiment_commands",
    "experiment_verdicts",
    "experiment_checks",
    "experiment_causes",
    "environment",
)
# Computed from the runs: written again each time.
_COMPUTED = ("experiment_verdicts", "experiment_checks", "experiment_causes")


class Kept:
    """An experiment's recording in `folder`. OSError: it cannot be written, and is as it was."""

    def __init__(self, folder: Path, library: Library, options: dict[str, Any]) -> None:
        self.folder = folder
        self.library = library
        self.options = options
        self.rows: list[RunRow] = []
        self._environment: set[tuple[Any, ...]] = set()

    @classmethod
    def begin(cls, folder: Path, library: Library, experiment: Experiment, options: dict[str, Any]) -> Kept:
        """A new recording, with the experiment's files and what was chosen (`options`: seed, --set, ...)."""
        refuse_replaceable(folder)
        with created(folder) as place:
            cls._write(place, experiment, options)
        try:
            return cls._begun(folder, library, experiment, options)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @staticmethod
    def _write(place: Path, experiment: Experiment, options: dict[str, Any]) -> None:
        """The experiment's files, and what was chosen; and the recording without rows."""
        text = experiment.path.read_bytes() if experiment.path.is_file() else as_toml(experiment).encode()
        to_disk.write(place / FILE, text, 0o600)
        files = (place / FILE).with_suffix("")
        for name, content in files_of(experiment).items():
            files.mkdir(mode=0o700, exist_ok=True)
            to_disk.write(files / name, content.encode(), 0o600)
        to_disk.write(place / PLAN, (json.dumps(options, indent=1) + "\n").encode(), 0o600)
        capture = empty_capture("experiment", "runs", "experiment")
        manifest = {
            **empty_manifest({}, {**capture, "complete": False, "ended_by": "running"}),
            "tool": {"name": "sysdock", "version": __version__},
            "command": options["command"],
            "host": platform.node(),
            "started_ns": time.time_ns(),
            "complete": False,
        }
        manifest["tables"] = {name: {"rows": 0, "lost": 0, "parts": []} for name in _TABLES}
        write_manifest(place, manifest, is_own=True)

    @classmethod
    def _begun(cls, folder: Path, library: Library, experiment: Experiment, options: dict[str, Any]) -> Kept:
        kept = cls(folder, library, options)
        rows = [
            (case.case_id, name, str(value))
            for case in experiment.cases()
            for name, value in {
                "experiment": experiment.id,
                "workload": case.workload.name,
                "baseline": experiment.plan.baseline,
                **case.values,
            }.items()
        ]
        kept.add({"experiment_cases": rows})
        kept.add_environment([(*fact, "recorder") for fact in _machine()])
        kept.add_environment(capture_environment(_sections(experiment, library), folder.resolve()))
        kept.add_environment(programs_used(programs_of(experiment)))
        return kept

    @classmethod
    def again(cls, folder: Path, library: Library) -> tuple[Kept, Experiment]:
        """An existing one, with its experiment as it was chosen; UserError if it is none."""
        if not (folder / PLAN).is_file() or not (folder / FILE).is_file():
            hint = "`sysdock experiment run NAME -o REC` makes one"
            raise UserError("is not a recording of an experiment", hint, str(folder))
        options = read_chosen(folder)
        experiment = applied(parse_experiment(folder / FILE, options["id"]), options)
        kept = cls(folder, library, options)
        kept.rows = read_rows(Recording.open(folder), library)
        return kept, experiment

    def add(self, rows: dict[str, Sequence[Sequence[Any]]]) -> None:
        """Rows of several tables at once."""
        with locked(self.folder, WHO) as place:
            append(place, self.library, rows, _clocked)

    def add_runs(self, runs: Sequence[RunRow]) -> None:
        """Runs with their metrics and methods, and the profiles of explain runs."""
        metrics: list[tuple[int, str, float | None, str | None]] = []
        for run in runs:
            metrics += [(run.run_id, name, value, None) for name, value in run.metrics.items()]
            metrics += [(run.run_id, name, None, json_of(why)) for name, why in run.missing.items()]
        profiles = [
            (run.run_id, item.kind, item.name, item.value, item.unit)
            for run in runs
            for item in run.profile.items
        ]
        rows = [run.values() for run in runs]
        stacks = [(run.run_id, *stack) for run in runs for stack in run.profile.stacks]
        methods = [(run.run_id, *method.values()) for run in runs for method in run.methods]
        self.add(
            {
                "experiment_runs": rows,
                "experiment_metrics": metrics,
                "experiment_profiles": profiles,
                "experiment_stacks": stacks,
                "experiment_methods": methods,
            }
        )
        self.rows += runs

    def add_environment(self, facts: Sequence[tuple[Any, ...]]) -> None:
        """Facts about the machine; those that were stated before are left out."""
        new = [fact for fact in dict.fromkeys(facts) if fact not in self._environment]
        self._environment.update(new)
        self.add({"environment": new})

    def replace(self, rows: dict[str, Sequence[Sequence[Any]]]) -> None:
        """Replaces the results computed from the runs."""

        def forget(manifest: dict[str, Any]) -> None:
            for name in rows:
                manifest["tables"][name] = {"rows": 0, "lost": 0, "parts": []}

        assert set(rows) <= set(_COMPUTED)
        with locked(self.folder, WHO) as place:
            append(place, self.library, {}, forget)
            append(place, self.library, rows, _clocked)

    def end(self, ended: str) -> None:
        """Says what ended it: `end of input`, interrupted, ..."""
        manifest = Recording.open(self.folder).manifest
        manifest["duration_ns"] = time.time_ns() - manifest["started_ns"]
        manifest["complete"] = ended == "end of input"
        total = len(self.rows)
        manifest["captures"][0] |= {
            "ended_by": ended,
            "complete": manifest["complete"],
            "total": total,
            "understood": total,
        }
        with opened(self.folder) as place:
            write_manifest(place, manifest)


def read_rows(recording: Recording, library: Library) -> list[RunRow]:
    """The runs of a recording with their metrics."""
    tables = ["experiment_runs", "experiment_metrics", "experiment_profiles"]
    connection = connect(recording, library, tables)
    try:
        metrics: dict[int, dict[str, float]] = {}
        missing: dict[int, dict[str, Fact]] = {}
        for run_id, name, value, why in connection.execute(
            "SELECT run_id, metric, value, reason FROM experiment_metrics"
        ).fetchall():
            if value is None:
                missing.setdefault(run_id, {})[name] = fact_from_json(why) or fact("experiment/not_known")
            else:
                metrics.setdefault(run_id, {})[name] = value
        profiles: dict[int, list[Item]] = {}
        for run_id, *item in connection.execute(
            "SELECT run_id, kind, name, value, unit FROM experiment_profiles"
        ).fetchall():
            profiles.setdefault(run_id, []).append(Item(*item))
        names = [field.name for field in takewhile(lambda field: field.name != "metrics", fields(RunRow))]
        rows = connection.execute(
            f"SELECT {', '.join(names)} FROM experiment_runs ORDER BY run_id"
        ).fetchall()
        found = [dict(zip(names, row, strict=True)) for row in rows]
        for each in found:
            each["reason"] = fact_from_json(each["reason"])
        return [
            RunRow(
                **row,
                metrics=metrics.get(row["run_id"], {}),
                profile=Profile(tuple(profiles.get(row["run_id"], ()))),
                missing=missing.get(row["run_id"], {}),
            )
            for row in found
        ]
    finally:
        connection.close()


def _sections(experiment: Experiment, library: Library) -> list[EnvironmentSection]:
    """What is recorded of the machine. A pack may define that by programs: without trust only ours run."""
    needs_no_trust = experiment.is_of_commands and not library.is_own
    return (Library(library.own_root) if needs_no_trust else library).environment()


def _clocked(manifest: dict[str, Any]) -> None:
    manifest["duration_ns"] = time.time_ns() - manifest["started_ns"]


def _machine() -> list[tuple[str, str, str]]:
    return [
        ("host", "name", platform.node()),
        ("kernel", "release", platform.release()),
        ("tool", "sysdock", __version__),
    ]
