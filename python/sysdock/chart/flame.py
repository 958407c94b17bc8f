"""Reduces a result to a flame graph: nested rectangles, a level for each function of a stack.

`x` is a stack as the table `stack_texts` writes it, its parts from the outermost in. Each row of the result
adds `y` to all rectangles of its stack, so that one is as wide as all that was called from it, itself
included. The widest are kept; those that are not drawn are one rectangle of their parent, `(other: N)`, as
wide as they are together: no time is left out. A second column of `y` is shown where the pointer is.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sysdock.chart.reduce import Marks, Reducer, Wanted, quoted
from sysdock.sentences import Words, fact

# Rows that are read; the others are one.
_STACKS = 20_000
# Kernels record at most 127 functions of a program, and as many of their own. What lies deeper counts as own.
_LEVELS = 200
# Levels in view at a time; deeper ones come into view by zooming in.
SEEN = 56
_OTHERS = "(other stacks)"
# Kinds of parts of a stack, by the end or beginning of their text.
PROCESS, PROGRAM, PYTHON, KERNEL, WAIT, OTHER = KINDS = (
    "process",
    "program",
    "Python",
    "kernel",
    "wait",
    "other",
)
_TEXTS = (
    (re.compile(r"waiting: "), WAIT),
    # A system call.
    (re.compile(r"(?P<function>[a-z0-9_]+\(\))$"), KERNEL),
    (re.compile(r"\(other|\((no|unknown) "), OTHER),
    (re.compile(r"(?P<function>.*) \(Python (?P<object>[^()]*)\)$", re.DOTALL), PYTHON),
    (re.compile(r"(?P<function>.+) \[(?P<object>[^\[\]]*)\]$", re.DOTALL), KERNEL),
    (re.compile(r"(?P<function>.*) \((?P<object>[^()]*)\)$", re.DOTALL), PROGRAM),
)


@dataclass
class _Node:
    """A function with its callers; `total` and `number` include the functions that it called, `own` does
    not.

    `merged`: it stands for the narrow ones of its parent.
    """

    name: str
    level: int = 0
    total: float = 0.0
    number: float = 0.0
    own: float = 0.0
    drawn: bool = False
    merged: bool = False
    below: dict[str, _Node] = field(default_factory=dict)


def flame(reducer: Reducer, wanted: Wanted, limit: int) -> Marks:
    """One row per rectangle, by `id`: `parent`, level as `place`, `from`, `to`, its kind as `series`."""
    root = _Node("")
    deepest = 0
    for stack, total, number in _stacks(reducer, wanted):
        parts = [part or "?" for part in stack.split(";")]
        deepest = max(deepest, len(parts))
        _add(root, parts[:_LEVELS], total, number)
    if not root.total:
        return Marks([], 0, 0)
    # Each parent has one rectangle at most for those that are not drawn.
    shown, every = _choose(root, limit // 2), _count(root)
    rows = list(_placed(root))
    notes: list[Words] = []
    if shown < every:
        summed = sum(row["y"] for row in rows if row["merged"])
        share = f"{100 * summed / root.total:.1f} %"
        notes.append(fact("chart/others_together_other", share=share))
    if deepest >= SEEN:
        notes.append(fact("chart/levels_time", seen=SEEN, deepest=deepest + 1))
    return Marks(rows, shown, every, notes=notes)


def parts_of(part: str, level: int) -> tuple[str, str, str]:
    """The function of a part of a stack, the file that contains it, and its kind, one of KINDS."""
    for pattern, kind in _TEXTS:
        if found := pattern.match(part):
            groups = found.groupdict()
            return groups.get("function", part), groups.get("object", ""), kind
    # The second level of a wake-up is the process that was woken.
    return part, "", PROCESS if level <= 2 and not part.startswith("[") else OTHER


def _stacks(reducer: Reducer, wanted: Wanted) -> list[tuple[str, float, float]]:
    """The stacks with the highest y, and the sum of the others."""
    stack, value = f"CAST({quoted(wanted.x)} AS VARCHAR)", f"CAST({quoted(wanted.y[0])} AS DOUBLE)"
    number = f"CAST({quoted(wanted.y[1])} AS DOUBLE)" if len(wanted.y) > 1 else "0"
    sql = f"""
WITH result AS ({reducer.result.sql}
), known AS (
    SELECT {stack} AS stack, {value} AS y, {number} AS number FROM result
), ranked AS (
    SELECT *, row_number() OVER (ORDER BY y DESC, stack) AS rank FROM known
    WHERE isfinite(y) AND y > 0 AND stack <> ''
)
SELECT CASE WHEN rank <= {_STACKS} THEN stack ELSE '{_OTHERS}' END AS stack, sum(y) AS y, sum(number)
FROM ranked GROUP BY 1 ORDER BY y DESC, stack
"""
    return reducer._fetch(sql, [])


def _add(root: _Node, parts: list[str], total: float, number: float) -> None:
    node = root
    node.total += total
    node.number += number
    for level, part in enumerate(parts, 1):
        found = node.below.get(part)
        if found is None:
            found = node.below[part] = _Node(part, level)
        node = found
        node.total += total
        node.number += number
    node.own += total


def _count(root: _Node) -> int:
    waiting, count = [root], 0
    while waiting:
        node = waiting.pop()
        count += 1
        waiting += node.below.values()
    return count


def _choose(root: _Node, most: int) -> int:
    """Marks the widest ones as drawn. What lies above one is drawn, too: it is as wide, and comes first."""
    # Candidates for the next frame: each is at least as wide as all below it. The number breaks ties.
    waiting = [(-root.total, 0, "", 0, root)]
    met, drawn = 0, 0
    while waiting and drawn < most:
        node = heapq.heappop(waiting)[-1]
        node.drawn = True
        drawn += 1
        for child in node.below.values():
            met += 1
            heapq.heappush(waiting, (-child.total, child.level, child.name, met, child))
    return drawn


def _placed(root: _Node) -> Iterator[dict[str, Any]]:
    """Rectangles from the top, those of one parent side by side from its left edge, the widest first."""
    waiting = deque([(root, -1, 0.0)])
    for number in itertools.count():
        if not waiting:
            return
        node, parent, place = waiting.popleft()
        yield _row(node, number, parent, place, root.total)
        for child in _drawn_below(node):
            waiting.append((child, number, place))
            place += child.total


def _drawn_below(node: _Node) -> list[_Node]:
    """The drawn ones, the widest first, then one for all others."""
    children = sorted(node.below.values(), key=lambda child: (-child.total, child.name))
    drawn = [child for child in children if child.drawn]
    rest = [child for child in children if not child.drawn]
    if not rest:
        return drawn
    total, number = sum(child.total for child in rest), sum(child.number for child in rest)
    name = f"(other: {len(rest):,})"
    return [*drawn, _Node(name, node.level + 1, total, number, total, drawn=True, merged=True)]


def _row(node: _Node, number: int, parent: int, place: float, whole: float) -> dict[str, Any]:
    function, file, kind = parts_of(node.name, node.level)
    return {
        "id": number,
        "parent": parent,
        "name": node.name,
        "function": function,
        "object": file,
        "series": kind,
        "place": node.level,
        "from": place,
        "to": place + node.total,
        "y": node.total,
        "own": node.own,
        "number": node.number,
        "whole": whole,
        "merged": node.merged,
    }
