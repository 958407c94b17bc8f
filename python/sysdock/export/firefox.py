"""A profile for the Firefox Profiler: for each thread its calls as markers, and time in calls as a call tree.

Its processed profile format, version 60; the profiler brings older versions up to its own. Source:
docs-developer/processed-profile-format.md and src/types/profile.ts of https://github.com/firefox-devtools/profiler.
Times are milliseconds since the start of the recording.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO, Any

from sysdock.analysis import Session
from sysdock.export.profiles import stacks_of
from sysdock.export.traces import THREADS_SQL, Written, calls_of, calls_total
from sysdock.text import harmless_json

_VERSION, _GECKO_VERSION = 60, 29
_NS_PER_MS = 1e6
# Phase of a marker: a point in time, or an interval.
_INSTANT, _INTERVAL = 0, 1
# Colours of the classes of calls, by what they mostly wait for; the others are grey.
_COLORS = {"read": "blue", "write": "orange", "copy": "orange", "sync": "red", "map": "lightblue"}
_COLORS |= dict.fromkeys(("open", "close", "stat", "dir", "name", "attr"), "green")
_COLORS |= {"socket": "purple", "wait": "transparent", "lock": "yellow"}
_FIELDS = (("path", "file-path"), ("bytes", "bytes"), ("offset", "bytes"), ("error", "string"))
_FUNCTION: dict[str, Any] = {"isJS": False, "relevantForJS": False, "resource": -1}
_FUNCTION |= dict.fromkeys(("source", "lineNumber", "columnNumber"))
_FRAME: dict[str, Any] = {"address": -1, "inlineDepth": 0}
_FRAME |= dict.fromkeys(("subcategory", "nativeSymbol", "innerWindowID", "line", "column"))


def write_firefox(session: Session, out: IO[bytes], most: int) -> Written:
    """Writes a profile with at most `most` calls, the longest."""
    manifest = session.recording.manifest
    start = manifest["started_ns"]
    tree, shown = _CallTree(), 0
    timed = session.recording.has_durations
    threads = {row[0]: _thread(*row, timed=timed) for row in session.fetch(THREADS_SQL)}
    stacks = stacks_of(session)
    for ts_ns, dur_ns, task_id, call, class_, path, moved, offset, errno, stack in calls_of(session, most):
        if task_id not in threads:
            threads[task_id] = _thread(task_id, task_id, task_id, task_id, "", "", timed=timed)
        thread = threads[task_id]
        at, took = (ts_ns - start) / _NS_PER_MS, None if dur_ns is None else dur_ns / _NS_PER_MS
        category = tree.category(class_ or "other")
        given = zip((name for name, _ in _FIELDS), (path, moved, offset, errno), strict=True)
        data = {"type": "call", **{name: value for name, value in given if value is not None}}
        _append_marker(thread["markers"], tree.text(call), at, took, category, data)
        frames = [*stacks.get(stack, ()), call, *([path] if path else ())]
        _append_sample(thread["samples"], tree.stack(frames, category), at, (took or 0.0) if timed else 1)
        shown += 1
    content = {
        "meta": _meta(manifest, tree, session.recording.has_clock),
        "libs": [],
        "threads": [thread for thread in threads.values() if thread["samples"]["length"]],
        "shared": tree.tables(),
    }
    out.write(
        harmless_json(json.dumps(content, ensure_ascii=False, separators=(",", ":"))).encode(
            "utf-8", "replace"
        )
    )
    return Written(shown, calls_total(session))


class _CallTree:
    """The tables that all threads share: texts, functions, frames and stacks, each kept once."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._categories: dict[str, int] = {"other": 0}
        self._frames: dict[tuple[str, int], int] = {}
        self._stacks: dict[tuple[int | None, int], int] = {}

    def text(self, words: str) -> int:
        return self._texts.setdefault(words, len(self._texts))

    def category(self, name: str) -> int:
        return self._categories.setdefault(name, len(self._categories))

    def stack(self, frames: Iterable[str], category: int) -> int | None:
        """The number of the stack with these frames, the outermost first."""
        at: int | None = None
        for name in frames:
            self.text(name)
            frame = self._frames.setdefault((name, category), len(self._frames))
            at = self._stacks.setdefault((at, frame), len(self._stacks))
        return at

    def categories(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "color": _COLORS.get(name, "grey"), "subcategories": ["Other"]}
            for name in self._categories
        ]

    def tables(self) -> dict[str, Any]:
        names = list(dict.fromkeys(name for name, _ in self._frames))
        functions = {name: place for place, name in enumerate(names)}
        frames = [
            {**_FRAME, "category": category, "func": functions[name]} for name, category in self._frames
        ]
        stacks = [{"prefix": prefix, "frame": frame} for prefix, frame in self._stacks]
        return {
            "funcTable": _columns([{**_FUNCTION, "name": self._texts[name]} for name in names], _FUNCTION),
            "frameTable": _columns(frames, _FRAME),
            "stackTable": _columns(stacks, ("prefix", "frame")),
            "resourceTable": _columns([], ("name", "host", "type", "lib")),
            "nativeSymbols": _columns([], ("libIndex", "address", "name", "functionSize")),
            "sources": _columns([], ("id", "filename")),
            "stringArray": list(self._texts),
        }


def _columns(rows: list[dict[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    names = rows[0] if rows else names
    return {**{name: [row[name] for row in rows] for name in names}, "length": len(rows)}


def _thread(
    task_id: int, process: int, pid: int, tid: int, comm: str, command: str, *, timed: bool
) -> dict[str, Any]:
    """A thread without calls yet. Ids are used again, and by other hosts: numbers of tasks are not."""
    program = comm or command.partition(" ")[0] or "?"
    return {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": f"{program} {tid}",
        "processName": f"{program} {pid}",
        "isMainThread": task_id == process,
        "showMarkersInTimeline": True,
        "pid": str(process),
        "tid": task_id,
        "samples": {
            **{name: [] for name in ("stack", "time", "weight")},
            "weightType": "tracing-ms" if timed else "samples",
            "length": 0,
        },
        "markers": {
            **{name: [] for name in ("data", "name", "startTime", "endTime", "phase", "category")},
            "length": 0,
        },
    }


def _append_marker(
    markers: dict[str, Any], name: int, at: float, took: float | None, category: int, data: dict[str, Any]
) -> None:
    markers["name"].append(name)
    markers["startTime"].append(at)
    markers["endTime"].append(None if took is None else at + took)
    markers["phase"].append(_INSTANT if took is None else _INTERVAL)
    markers["category"].append(category)
    markers["data"].append(data)
    markers["length"] += 1


def _append_sample(samples: dict[str, Any], stack: int | None, at: float, weight: float) -> None:
    samples["stack"].append(stack)
    samples["time"].append(at)
    samples["weight"].append(weight)
    samples["length"] += 1


def _meta(manifest: dict[str, Any], tree: _CallTree, has_clock: bool) -> dict[str, Any]:
    schema = {
        "name": "call",
        "tooltipLabel": "{marker.name}",
        "tableLabel": "{marker.name} {marker.data.path}",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "fields": [{"key": key, "label": key, "format": format_} for key, format_ in _FIELDS],
    }
    return {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _VERSION,
        "product": manifest.get("command") or "sysdock",
        "importedFrom": "sysdock",
        # There is no sampling: each call has its exact time.
        "interval": 1,
        "startTime": manifest["started_ns"] / _NS_PER_MS if has_clock else 0,
        "processType": 0,
        "stackwalk": 0,
        "symbolicated": True,
        "categories": tree.categories(),
        "markerSchema": [schema],
    }
