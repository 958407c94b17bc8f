"""The subject of a recording in words: a command, processes that ran already, or the logs that were
imported.
"""

from __future__ import annotations

from typing import Any

from sysdock.recording.manifest import Recording
from sysdock.sentences import Words, fact, listed


def subject(recording: Recording) -> Words:
    """The name of its folder where nothing else is known."""
    if command := recording.manifest.get("command"):
        return str(command)
    if words := _watched(recording.manifest.get("watched")):
        return words
    sources = ", ".join(str(source.get("path")) for source in recording.sources)
    return sources or recording.folder.name


def _watched(value: Any) -> Words | None:
    """The words for `watched` of recording.json (docs/reference/recording.md); None where there are none."""
    if value == "all":
        return fact("recording/all_processes")
    if not isinstance(value, dict):
        return None
    if isinstance(folder := value.get("cgroup"), str):
        return fact("recording/control_group", folder=folder)
    processes = value.get("processes")
    if not isinstance(processes, list) or not processes:
        return None
    return listed(_process(process) for process in processes if isinstance(process, dict))


def _process(process: dict[str, Any]) -> Words:
    named = fact("recording/process", pid=process.get("pid"), name=process.get("name"))
    children = process.get("children")
    if not isinstance(children, int) or children < 1:
        return named
    return fact("recording/with_children", process=named, children=children)
