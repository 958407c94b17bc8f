"""Writes the report of a recording: one HTML file that works without a network and calls nowhere."""

from sysdock.report.writer import write_report

__all__ = ["write_report"]
