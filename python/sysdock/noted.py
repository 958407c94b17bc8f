"""Parsed forms of texts that come with sysdock, stored by `tools/gen --assets` because parsing is slow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any


class Noted:
    """Stored facts, looked up by the text they describe. A text that has changed since is not found."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, text: str) -> Any:
        """The value stored for this text; None for any other, and in a checkout that was not set up."""
        return self._facts.get(_key(text))

    def write(self, facts: Mapping[str, Any]) -> None:
        """Replaces everything that is stored; `facts` is keyed by text."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        by_key = {_key(text): fact for text, fact in facts.items()}
        self.path.write_text(json.dumps(by_key, separators=(",", ":")), "utf-8")

    @cached_property
    def _facts(self) -> dict[str, Any]:
        try:
            facts: dict[str, Any] = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return facts


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
