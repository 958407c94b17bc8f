"""What a recording is of, in words: a command, processes that ran already, or the logs that were imported."""

from __future__ import annotations

from typing import Any

from sysdock.recording.manifest import Recording


def subject(recording: Recording) -> tuple[str, str]:
    """In English and in Japanese; the name of its folder where nothing else is known."""
    if command := recording.manifest.get("command"):
        return command, command
    if words := _watched(recording.manifest.get("watched")):
        return words
    sources = ", ".join(str(source.get("path")) for source in recording.sources)
    name = sources or recording.folder.name
    return name, name


def _watched(value: Any) -> tuple[str, str] | None:
    """The words for `watched` of recording.json (docs/reference/recording.md); None where there are none."""
    if value == "all":
        return "all processes", "すべてのプロセス"
    if not isinstance(value, dict):
        return None
    if isinstance(folder := value.get("cgroup"), str):
        return f"control group {folder}", f"コントロールグループ {folder}"
    processes = value.get("processes")
    if not isinstance(processes, list) or not processes:
        return None
    words = [_process(process) for process in processes if isinstance(process, dict)]
    return ", ".join(english for english, _ in words), "、".join(japanese for _, japanese in words)


def _process(process: dict[str, Any]) -> tuple[str, str]:
    english = f"process {process.get('pid')} ({process.get('name')})"
    japanese = f"プロセス {process.get('pid')} ({process.get('name')}) "
    match process.get("children"):
        case 1:
            return f"{english} and 1 child process", f"{japanese}とその子プロセス 1 個"
        case int(count) if count > 1:
            return f"{english} and {count:,} child processes", f"{japanese}とその子プロセス {count:,} 個"
    return english, japanese
