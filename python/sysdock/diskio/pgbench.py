"""Output of pgbench: transactions per second of a real server, with which a prediction can be compared."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError

# Names of pgbench's own scripts (src/bin/pgbench/pgbench.c, builtin_script).
_WORKLOADS = {
    "<builtin: simple update>": "simple_update",
    "<builtin: TPC-B (sort of)>": "tpcb",
    "<builtin: select only>": "select",
}
_HEAD = re.compile(r"^transaction type: (.{1,100})$", re.MULTILINE)
_CLIENTS = re.compile(r"^number of clients: (\d{1,6})$", re.MULTILINE)
_SCALE = re.compile(r"^scaling factor: (\d{1,9})$", re.MULTILINE)
# Before version 14 there were two; the last one leaves out the time of making connections.
_TPS = re.compile(r"^tps = (\d{1,12}(?:\.\d{1,12})?)\b", re.MULTILINE)
_LONGEST = 64 << 20
_HINT = "give what pgbench printed at its end: pgbench -N -c 8 -T 60 >FILE"


@dataclass(frozen=True)
class Run:
    """One run of pgbench."""

    workload: str
    clients: int
    scale: int
    tps: float


def read(files: Sequence[Path]) -> list[Run]:
    """The runs of some files, each of which may have several. UserError: a file has none, or is none."""
    return [run for file in files for run in _of_file(file)]


def measured(runs: Sequence[Run], scale: int) -> dict[tuple[str, int], float]:
    """Transactions a second by workload and clients, of several runs their median.

    UserError: they are of a database of another size than what is predicted.
    """
    for run in runs:
        if run.scale != scale:
            fact = f"pgbench ran with scale {run.scale}, but the prediction is for scale {scale}"
            raise UserError(fact, f"predict the same: --scale {run.scale}", "--pgbench")
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        found.setdefault((run.workload, run.clients), []).append(run.tps)
    return {key: statistics.median(rates) for key, rates in found.items()}


def _of_file(file: Path) -> list[Run]:
    try:
        with file.open("rb") as opened:
            text = opened.read(_LONGEST).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", _HINT, str(file)) from None
    runs, others = [], []
    # Before the first head there is nothing; then head and text of each run in turns.
    _, *parts = _HEAD.split(text)
    for head, part in zip(parts[::2], parts[1::2], strict=True):
        clients, scale, rates = _CLIENTS.search(part), _SCALE.search(part), _TPS.findall(part)
        if head not in _WORKLOADS:
            others.append(head)
        elif clients and scale and rates:
            runs.append(Run(_WORKLOADS[head], int(clients[1]), int(scale[1]), float(rates[-1])))
    if not runs:
        why = f"only {others[0]}, which is not predicted" if others else "no result of pgbench"
        raise UserError(why, _HINT, str(file))
    return runs
