"""Converts recording.json of earlier formats that are still read, when a recording is opened."""

from __future__ import annotations

from typing import Any

from sysdock.version import FORMAT_VERSION

# The last format with sentences where there are facts now.
PROSE_FORMAT = 4


def convert_prose(manifest: dict[str, Any]) -> None:
    """Makes facts of the sentences of format 4: they stay as they are, in English.

    Its tables have sentences in the columns of facts, which `facts_from_json` takes for plain text.
    """
    captures = manifest.get("captures")
    for capture in filter(_is_object, captures if isinstance(captures, list) else []):
        clock, families = capture.get("clock"), capture.get("families")
        if isinstance(clock, dict) and isinstance(clock.get("note"), str):
            clock["note"] = [{"code": "clock/stated", "note": clock["note"]}]
        for state in filter(_is_object, families if isinstance(families, list) else []):
            if isinstance(reason := state.get("missing"), str):
                is_wish = reason == "not requested"
                refusal = {"code": "capture/refused", "reason": reason}
                state["missing"] = {"code": "capture/not_requested"} if is_wish else refusal
    manifest["format_version"] = FORMAT_VERSION


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)
