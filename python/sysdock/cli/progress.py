"""The progress line of long recordings and imports."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

_INTERVAL_S = 0.2


class ProgressLine:
    """One line on standard error, redrawn at most five times a second, and only on a terminal."""

    def __init__(self) -> None:
        self.shown = False
        self.last = 0.0
        self.enabled = sys.stderr.isatty()

    def update(self, event: dict[str, Any]) -> None:
        """Draws a progress event."""
        self.show(progress_text(event))

    def show(self, text: str) -> None:
        """Draws a text."""
        now = time.monotonic()
        if not self.enabled or now - self.last < _INTERVAL_S:
            return
        self.last = now
        self.shown = True
        # A line that wraps could not be drawn over.
        fitting = text[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{fitting}\x1b[K")
        sys.stderr.flush()

    def clear(self) -> None:
        """Removes the line and stops drawing."""
        self.enabled = False
        self.wipe()

    def wipe(self) -> None:
        """Removes the line, until something is drawn again."""
        if self.shown:
            self.shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_text(event: dict[str, Any]) -> str:
    """A progress event in words: what is done, share, bytes, rate, time left; without what is not known."""
    if "what" in event:
        return f"sysdock: {event['done'] + 1} of {event['total']}: {event['what']}{_left(event)}"
    done, total = event.get("bytes_done") or 0, event.get("bytes_total")
    parts = []
    if total:
        parts.append(f"{min(100, 100 * done // total)} %")
        parts.append(f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB")
    else:
        parts.append(f"{done / 1e6:,.1f} MB")
    parts.append(f"{event.get('lines') or 0:,} lines")
    if rate := event.get("bytes_per_s"):
        parts.append(f"{rate / 1e6:,.0f} MB/s")
    return "sysdock: " + ", ".join(parts) + _left(event)


def _left(event: dict[str, Any]) -> str:
    left = event.get("seconds_left")
    return "" if left is None else f", {int(left) // 60}:{int(left) % 60:02} left"
