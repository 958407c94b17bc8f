"""Runs experiments: scenarios in randomized blocks, each with restored state, and a verdict that holds."""

from sysdock.experiment.definition import missing_tools, problems
from sysdock.experiment.preparation import PREPARATIONS, kind_in_words
from sysdock.experiment.running import run

__all__ = ["PREPARATIONS", "kind_in_words", "missing_tools", "problems", "run"]
