"""Load by several hosts at once: a generator on each, clocks compared, one start, results as one row.

Each host runs `sysdock-native load DIR --agent`, started by ssh, srun or whatever the user names. What is
exchanged with it is one JSON object a line (crates/native/src/load.rs).
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, refusal
from sysdock.sentences import entry_of, fact, facts_of

# What runs on a host, for the shell of its user, whichever it is: the same text always. The native program
# and the folder come as lines of its input, so that no shell reads them as anything else.
_REMOTE = 'exec sh -c \'IFS= read -r native && IFS= read -r folder && exec "$native" load "$folder" --agent\''
# Names of hosts come from batch systems, too: none is an option of ssh or srun.
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%@\[\]-]*")
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 {node}"
_ROUNDS = 12
# The common start is so far ahead that the order arrives before it [ns].
_AHEAD_NS = 100_000_000
# A start that hosts may miss by more than this is reported [ns].
_UNSURE_NS = 5_000_000
_END_S = 15


def allocated() -> list[str]:
    """The hosts of the Slurm or PBS job that this runs in; none outside of one."""
    if names := os.environ.get("SLURM_JOB_NODELIST"):
        done = subprocess.run(
            ["scontrol", "show", "hostnames", names], capture_output=True, text=True, check=False
        )
        return done.stdout.split()
    if file := os.environ.get("PBS_NODEFILE"):
        with suppress(OSError):
            return list(dict.fromkeys(Path(file).read_text("utf-8").split()))
    return []


@dataclass
class Clock:
    """The offset of a host's clock from ours, and its uncertainty [ns]."""

    ahead_ns: int
    unsure_ns: int


class Node:
    """The generator of one host."""

    def __init__(self, name: str, launch: str, native: str, directory: Path) -> None:
        """Starts it. `launch`: a command with {node} in it, to which the generator's own is added."""
        self.name = name
        if not _HOST.fullmatch(name):
            raise refusal(fact("load/no_name_of_a_host", name=name), place="--nodes")
        words = [word.replace("{node}", name) for word in shlex.split(launch)]
        self.reached_by = shlex.join(words)
        if "\n" in f"{native}{directory}":
            raise refusal(fact("load/line_break_in_path"), place=str(directory))
        try:
            self.process = subprocess.Popen(
                [*words, _REMOTE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                # Ctrl-C is for us: we tell it to end.
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(
                f"cannot be started: {error.strerror}", place=words[0] if words else name
            ) from None
        self.facts: list[list[Any]] = []
        self.clock = Clock(0, 0)
        self.write(f"{native}\n{directory}\n")

    def begin(self) -> None:
        """Waits until it has made its folder, and compares the clocks."""
        self.facts = self.answer("begun")["facts"]
        tries = []
        for _ in range(_ROUNDS):
            before = time.time_ns()
            self.say("clock")
            theirs = self.answer("clock")["ns"]
            after = time.time_ns()
            tries.append((after - before, theirs - (before + after) // 2))
        trip, ahead = min(tries)
        self.clock = Clock(ahead, trip // 2)

    def say(self, order: Any) -> None:
        """Gives it an order."""
        self.write(json.dumps(order) + "\n")

    def write(self, lines: str) -> None:
        """Gives it lines of input."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(lines)
            self.process.stdin.flush()
        except OSError:
            raise self._gone() from None

    def answer(self, event: str) -> dict[str, Any]:
        """The next thing that it says, which must be this event."""
        received = self.event()
        if received.get("event") != event:
            raise self._gone()
        return received

    def event(self) -> dict[str, Any]:
        """The next thing that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        with suppress(ValueError):
            received: dict[str, Any] = json.loads(line)
            return received
        raise self._gone()

    def _gone(self) -> UserError:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=2)
        assert self.process.stderr is not None
        self.process.kill()
        words = self.process.stderr.read().strip().splitlines()
        why = words[0].removeprefix("sysdock: ") if words else "it ended"
        return UserError(
            why, f"try `{self.reached_by} true`; sysdock-native must be there, too (--native)", self.name
        )

    def let_go(self) -> None:
        """Has it remove what it made, and end; does not wait for that."""
        with suppress(UserError, OSError, ValueError):
            self.say("end")
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):
            self.process.stdin.close()

    def end(self, until: float) -> None:
        """Waits for its end; what is there at `until` (of the monotonic clock, s) is killed."""
        try:
            self.process.wait(timeout=max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def measure(nodes: Sequence[Node], step: dict[str, Any]) -> list[dict[str, Any]]:
    """Does a step on all hosts at once; a row for each operation, with `latencies` and `progress`."""
    parts = divided(step, len(nodes))
    busy = [(node, part) for node, part in zip(nodes, parts, strict=True) if part is not None]
    for node, part in busy:
        node.say({"step": part})
    answers: dict[str, list[dict[str, Any]]] = {}
    while len(answers) < len(busy):
        ready = []
        silent = [node for node, _ in busy if node.name not in answers]
        while silent:
            node = _first_to_speak(silent)
            silent.remove(node)
            received = node.event()
            if received["event"] == "rows":
                answers[node.name] = received["rows"]
            else:
                ready.append(node)
        start = time.time_ns() + _AHEAD_NS
        for node in ready:
            node.say({"start_at": start + node.clock.ahead_ns})
    by_operation = zip(*(answers[node.name] for node, _ in busy), strict=False)
    clocks = [node.clock for node, _ in busy]
    names = [node.name for node, _ in busy]
    return [merged(rows, names, clocks) for rows in by_operation]


def skipped(nodes: Sequence[Node], step: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a step for which there is no time; its first host knows the operations that it has."""
    nodes[0].say({"skip": step})
    hosts = ",".join(node.name for node in nodes)
    return [{**row, "hosts": hosts} for row in nodes[0].answer("rows")["rows"]]


def _first_to_speak(nodes: Sequence[Node]) -> Node:
    """Waits for any of them: one that ends must not be noticed only when the others have done their step."""
    poll = select.poll()
    by_stream = {}
    for node in nodes:
        assert node.process.stdout is not None
        by_stream[node.process.stdout.fileno()] = node
        poll.register(node.process.stdout, select.POLLIN)
    return by_stream[poll.poll()[0][0]]


def divided(step: dict[str, Any], hosts: int) -> list[dict[str, Any] | None]:
    """The step of each host: processes, and bytes with them, are shared out; None: it has none."""
    total = step.get("processes", 1)
    parts: list[dict[str, Any] | None] = []
    for host in range(hosts):
        own = total // hosts + (host < total % hosts)
        part = {**step, "processes": own}
        if "size_bytes" in step:
            part["size_bytes"] = max(step["size_bytes"] * own // total, step.get("length_bytes", 4096))
        parts.append(part if own else None)
    return parts


def with_one_host(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """All steps; those of most processes once more on one host, to separate its limit from the server's."""
    own = [
        step for step in steps if step["item"] in ("transfer", "metadata") and step.get("layout") != "shared"
    ]
    most = max((step.get("processes", 1) for step in own), default=1)
    found = []
    for step in steps:
        found.append(step)
        if step in own and step.get("processes", 1) == most > 1:
            found.append({**step, "hosts": 1})
    return found


# The gravest first: the row of all hosts is worth no more than the worst of them.
_WORST = (
    "interrupted",
    "damaged",
    "failed",
    "full",
    "skipped",
    "too_short",
    "no_overlap",
    "from_memory",
    "not_known",
    "throttled",
    "measured",
)
_OVERLAP = 0.5
_SUMS = ("processes", "bytes", "operations", "errors")


def merged(rows: Sequence[dict[str, Any]], names: Sequence[str], clocks: Sequence[Clock]) -> dict[str, Any]:
    """The rows of all hosts as one, times by our own clock."""
    row = dict(rows[0])
    row["hosts"] = ",".join(names)
    for name in _SUMS:
        row[name] = sum(each[name] for each in rows)
    for name in ("device_read_bytes", "device_write_bytes"):
        values = [each[name] for each in rows]
        row[name] = None if None in values else sum(values)
    _times(row, rows, clocks)
    row["latencies"] = _latencies(rows)
    longest = max((each["max_ns"] for each in rows if each["max_ns"] is not None), default=None)
    row["max_ns"] = longest
    for name, part in (("p50_ns", 0.5), ("p99_ns", 0.99)):
        value = _quantile(row["latencies"], part)
        # A class is some wide: no quantile is longer than the longest.
        row[name] = value if value is None or longest is None else min(value, longest)
    row["progress"] = _progress(rows, clocks)
    row["status"], row["note"] = _status(row, rows, names, clocks)
    return row


def _times(row: dict[str, Any], rows: Sequence[dict[str, Any]], clocks: Sequence[Clock]) -> None:
    spans = [
        (each["started_ns"], each["first_end_ns"], each["ended_ns"], each["overlap"] or 0.0, clock.ahead_ns)
        for each, clock in zip(rows, clocks, strict=True)
        if each["started_ns"] is not None
    ]
    names = ("started_ns", "first_end_ns", "ended_ns", "overlap", "bytes_per_s", "operations_per_s")
    row.update(dict.fromkeys(names))
    if not spans:
        return
    start = min(span[0] - span[4] for span in spans)
    first_end = min(span[1] - span[4] for span in spans)
    end = max(span[2] - span[4] for span in spans)
    # The last start of a worker of each host follows from the host's overlap.
    last_start = max(span[1] - span[4] - span[3] * (span[2] - span[0]) for span in spans)
    row.update(started_ns=start, first_end_ns=first_end, ended_ns=end)
    if end > start:
        seconds = (end - start) / 1e9
        row["overlap"] = min(1.0, max(0.0, first_end - last_start) / (end - start))
        row["bytes_per_s"] = row["bytes"] / seconds if row["bytes"] else None
        row["operations_per_s"] = row["operations"] / seconds


def _latencies(rows: Sequence[dict[str, Any]]) -> list[list[int]]:
    counts: dict[tuple[int, int], int] = {}
    for each in rows:
        for low, high, operations in each["latencies"]:
            counts[low, high] = counts.get((low, high), 0) + operations
    return [[*limits, operations] for limits, operations in sorted(counts.items())]


def _quantile(latencies: Sequence[Sequence[int]], part: float) -> int | None:
    wanted = sum(each[2] for each in latencies) * part
    seen = 0
    for _, high, operations in latencies:
        seen += operations
        if seen >= wanted:
            return high
    return None


def _progress(rows: Sequence[dict[str, Any]], clocks: Sequence[Clock]) -> list[list[int]]:
    found, before = [], 0
    for each, clock in zip(rows, clocks, strict=True):
        for worker, ts_ns, *rest in each.get("progress", ()):
            found.append([before + worker, ts_ns - clock.ahead_ns, *rest])
        before += each["processes"]
    return found


def _status(
    row: dict[str, Any], rows: Sequence[dict[str, Any]], names: Sequence[str], clocks: Sequence[Clock]
) -> tuple[str, list[dict[str, Any]]]:
    """The gravest status of all hosts, and the facts about them."""
    found: list[tuple[str, dict[str, Any] | None]] = [
        (
            each["status"],
            entry_of(fact("load/on_host", host=name, notes=facts_of(each["note"]))) if each["note"] else None,
        )
        for each, name in zip(rows, names, strict=True)
    ]
    if row["overlap"] is not None and row["overlap"] < _OVERLAP and len(rows) > 1:
        found.append(("no_overlap", entry_of(fact("load/little_overlap", part=row["overlap"]))))
    unsure = max(clock.unsure_ns for clock in clocks)
    if unsure > _UNSURE_NS:
        found.append(("measured", entry_of(fact("load/clocks_unsure", by=unsure))))
    # Stable: notes of the gravest come first, and hosts in their order.
    found.sort(key=lambda each: _WORST.index(each[0]))
    notes = [note for _, note in found if note]
    return found[0][0], [each for n, each in enumerate(notes) if each not in notes[:n]]


def run(
    names: Sequence[str],
    launch: str,
    native: str,
    directory: Path,
    steps: Sequence[dict[str, Any]],
    is_due: Callable[[int, dict[str, Any]], bool],
    keep: Callable[[list[dict[str, Any]]], None],
    begun: Callable[[Sequence[Node]], None] = lambda _: None,
) -> None:
    """Does all steps on these hosts; a step with the field `hosts` runs on that many of the first ones.

    begun: is given all hosts once their clocks are known; is_due: is given which step is next, and returns
    whether there is time for it; keep: is given the rows of each.
    UserError: a host cannot be reached, or its generator ended. Whatever ends it, all generators are ended.
    """
    nodes: list[Node] = []
    try:
        for name in names:
            nodes.append(Node(name, launch, native, directory))
        for node in nodes:
            node.begin()
        begun(nodes)
        for number, step in enumerate(steps):
            taking_part = nodes[: step.get("hosts", len(nodes))]
            do = measure if is_due(number, step) else skipped
            keep(do(taking_part, {name: step[name] for name in step if name != "hosts"}))
    finally:
        # All at once: each may have a step to break off, and much to remove.
        for node in nodes:
            node.let_go()
        until = time.monotonic() + _END_S
        for node in nodes:
            node.end(until)
