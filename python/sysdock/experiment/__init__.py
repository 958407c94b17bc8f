"""Runs experiments: makes every case, measures it in turns with its control, and writes what came out."""

from sysdock.experiment.definition import missing_tools, problems
from sysdock.experiment.running import run
from sysdock.experiment.workload import WORKLOADS, kind_in_words

__all__ = ["WORKLOADS", "kind_in_words", "missing_tools", "problems", "run"]
