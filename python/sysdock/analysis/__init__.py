"""Runs SQL with bound parameters on the engine: analyses, rules, and a user's own statements."""

from sysdock.analysis.finding import Finding
from sysdock.analysis.session import Result, Session, bind

__all__ = ["Finding", "Result", "Session", "bind"]
