"""Calls a command when the answer of `probe status` is another one than before: a mail, a page."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from sysdock import to_disk
from sysdock.errors import UserError, refusal
from sysdock.probe.slowdown import Answer
from sysdock.sentences import fact

# File with the state for which the command was last called, next to the series.
_LAST = "called"
_UNEXPECTED = ("slower", "machine", "failing")


def is_news(series: Path, answer: Answer) -> bool:
    """Whether the answer differs from that of the last call. A first answer of `usual` does not.

    What is not known is no news.
    """
    if answer.status == "unknown":
        return False
    try:
        before = (series / _LAST).read_text("utf-8", "replace").strip()
    except OSError:
        before = "usual"
    return _told(answer) != before


def _told(answer: Answer) -> str:
    return answer.status if answer.status in _UNEXPECTED else "usual"


def call(command: str, series: Path, answer: Answer, text: str) -> None:
    """Runs a command, words as in a shell, with the text on its standard input; UserError where it fails."""
    environment = {**os.environ, "SYSDOCK_PROBE_STATUS": answer.status, "SYSDOCK_PROBE_SERIES": str(series)}
    try:
        words = shlex.split(command)
        done = subprocess.run(words, input=text, text=True, env=environment, check=False)
    except (OSError, ValueError, IndexError):
        raise refusal(fact("probe/no_command"), fact("probe/write_a_command"), "--call") from None
    if done.returncode:
        raise UserError(f"`{command}` ended with status {done.returncode}", "try it by hand", "--call")
    to_disk.write(series / _LAST, f"{_told(answer)}\n".encode(), 0o644)
