"""Series of probes with a truth that is known: what a year of them would look like."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sysdock.library import Library
from sysdock.probe.history import History, ItemHistory
from sysdock.probe.measuring import _digits
from sysdock.probe.series import _with_tables
from sysdock.recording.appending import append
from sysdock.recording.writing import empty_capture, empty_manifest, write_manifest

STARTED_NS = 1_750_000_000_000_000_000
TEN_MINUTES_NS = 600_000_000_000
ITEMS: tuple[tuple[int, str, str, int | None, float, float], ...] = (
    # step, item, operation, length, rate, how much of a slower machine is found in it
    (1, "control", "compute", None, 9000.0, 1.0),
    (2, "log", "append", 8192, 900.0, 0.1),
    (3, "random_read", "read", 4096, 7000.0, 0.2),
    (4, "transfer", "write", 1048576, 500.0, 0.1),
    (4, "transfer", "read", 1048576, 1500.0, 0.1),
    (5, "metadata", "create", None, 30000.0, 0.9),
    (5, "metadata", "stat", None, 300000.0, 1.0),
    (5, "metadata", "remove", None, 40000.0, 0.9),
    (6, "control", "compute", None, 9000.0, 1.0),
)
# The factor of an item's rate in a probe: (number of the probe from 0 on, item) -> factor.
Truth = Callable[[int, str], float]


@dataclass
class Maker:
    """Makes rows of `probe_results`: noise that resembles its neighbours, stalls now and then, and a truth."""

    seed: int = 1
    noise: float = 0.12
    alike: float = 0.3
    stalls: float = 0.03
    items: Sequence[tuple[int, str, str, int | None, float, float]] = ITEMS
    truth: Truth = lambda _number, _item: 1.0
    times: Callable[[int], int] = lambda number: STARTED_NS + number * TEN_MINUTES_NS
    kernel: Callable[[int], str] = lambda _number: "6.1.0"
    boot: Callable[[int], str] = lambda _number: "b0000000"
    _left: dict[str, float] = field(default_factory=dict)

    def rows(self, probes: int, first: int = 0) -> list[tuple[Any, ...]]:
        """Rows of so many probes, the first with the number `first` (from 0 on)."""
        rng = random.Random(self.seed + 1_000_003 * first)
        return [row for number in range(first, first + probes) for row in self._probe(rng, number)]

    def _noise(self, rng: random.Random, name: str, size: float) -> float:
        fresh = math.sqrt(1 - self.alike**2) * rng.gauss(0, size)
        self._left[name] = self.alike * self._left.get(name, 0.0) + fresh
        return self._left[name]

    def _probe(self, rng: random.Random, number: int) -> list[tuple[Any, ...]]:
        time_ns = self.times(number)
        machine = self._noise(rng, "machine", self.noise) + math.log(self.truth(number, "machine"))
        shared = (round(abs(rng.gauss(0.4, 0.3)), 2), round(abs(rng.gauss(2, 2)), 2), 0, False)
        when = (time_ns, time_ns - STARTED_NS + 10**12, self.boot(number), self.kernel(number))
        rows = []
        for step, item, operation, length, usual, follows in self.items:
            own = self.noise * (0.2 if item == "control" else 1.0)
            value = math.log(usual) + follows * machine + self._noise(rng, f"{item}{operation}{step}", own)
            if rng.random() < self.stalls:
                value -= rng.expovariate(1.0)
            rate = math.exp(value) * self.truth(number, item)
            p50 = int(_digits(1e9 / rate, 3))
            tail = int(_digits(1e9 / rate * (2 + rng.expovariate(0.5)), 3))
            measured = (_digits(rate, 4), p50, tail, "measured", None)
            rows.append((number + 1, step, *when, item, operation, length, *measured, *shared))
        return rows


def make_series(
    folder: Path, library: Library, rows: Sequence[tuple[Any, ...]] = (), *, mount: str = "/srv"
) -> Path:
    """A series with these rows, as `sysdock probe init` and `once` would have left it."""
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text('{"steps": [{"item": "control"}]}')
    manifest = empty_manifest({}, empty_capture("probe", "probes", "probe"))
    write_manifest(folder, manifest | {"started_ns": STARTED_NS, "host": "box"}, lasting=False)
    target = (1, STARTED_NS, mount, mount, "ext4", "/dev/sdb1", "rw,relatime", "8:17", 1 << 40)
    add_rows(folder, library, rows, [(*target, "6.1.0", "box", TEN_MINUTES_NS)])
    return folder


def add_rows(
    folder: Path, library: Library, rows: Sequence[tuple[Any, ...]], targets: Sequence[tuple[Any, ...]] = ()
) -> None:
    """Adds probes to a series."""

    def change(manifest: dict[str, Any]) -> None:
        _with_tables(manifest)
        capture = manifest["captures"][0]
        capture["total"] += len({row[0] for row in rows})
        capture["understood"] = capture["total"]
        if rows:
            last = max(row[2] for row in rows)
            manifest["duration_ns"] = max(manifest["duration_ns"], last - manifest["started_ns"])

    append(folder, library, {"probe_results": rows, "probe_targets": targets}, change)


def as_history(rows: Sequence[tuple[Any, ...]]) -> History:
    """What `history.read` makes of rows, without a recording."""
    by_item: dict[str, dict[int, list[float]]] = {}
    probes: dict[int, tuple[int, str, str]] = {}
    for row in rows:
        probes[row[0]] = (row[2], row[5], row[4])
        name = row[6] if row[6] == "control" else f"{row[6]} {row[7]}"
        by_item.setdefault(name, {}).setdefault(row[0], []).append(math.log(row[9]))
    items = [
        ItemHistory(
            name.split()[0],
            name.split()[-1],
            list(found),
            [sum(values) / len(values) for values in found.values()],
            "measured",
            name,
        )
        for name, found in by_item.items()
    ]
    ids = list(probes)
    times, kernels, boots = ([each[at] for each in probes.values()] for at in range(3))
    return History(ids, times, kernels, boots, items, None, {each: at for at, each in enumerate(ids)})  # type: ignore[arg-type]
