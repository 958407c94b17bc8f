"""Instruction traces as profiles of callgrind, which KCachegrind and `callgrind_annotate` open.

The format: https://valgrind.org/docs/manual/cl-format.html. There are no lines of sources: all costs of a
function are at line 0.
"""

from __future__ import annotations

import itertools
from typing import IO

from sysdock.analysis import Session
from sysdock.export.traces import Written
from sysdock.text import visible

NEEDS = ("function_calls", "traced_functions", "images")
_FUNCTIONS_SQL = """SELECT f.function_id, f.name, i.path, CAST(sum(c.steps) AS BIGINT)
FROM function_calls AS c
JOIN traced_functions AS f ON f.function_id = c.function_id
JOIN images AS i ON i.image_id = f.image_id
GROUP BY f.function_id, f.name, i.path ORDER BY f.function_id"""
_CALLS_SQL = """SELECT p.function_id, c.function_id, count(*), CAST(sum(c.steps_inclusive) AS BIGINT)
FROM function_calls AS c JOIN function_calls AS p ON p.call_id = c.caller_id
GROUP BY p.function_id, c.function_id ORDER BY p.function_id, c.function_id"""


def write_callgrind(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes the functions of all requests; `most` is no limit, as a function less is a cost less."""
    del most
    functions = session.fetch(_FUNCTIONS_SQL)
    calls = {
        caller: [row[1:] for row in rows]
        for caller, rows in itertools.groupby(session.fetch(_CALLS_SQL), key=lambda row: row[0])
    }
    places = {number: (visible(name), visible(path)) for number, name, path, _ in functions}
    total = sum(steps for *_, steps in functions)
    lines = ["# callgrind format", "version: 1", "creator: sysdock", "positions: line"]
    lines += ["events: Instructions", f"summary: {total}", ""]
    for number, *_, steps in functions:
        name, path = places[number]
        lines += [f"ob={path}", "fl=???", f"fn=({number}) {name}", f"0 {steps}"]
        for callee, times, inclusive in calls.get(number, ()):
            called, image = places[callee]
            lines += [f"cob={image}", f"cfn=({callee}) {called}", f"calls={times} 0", f"0 {inclusive}"]
        lines.append("")
    out.write("\n".join(lines).encode("utf-8", "replace"))
    return Written(len(functions), len(functions))
