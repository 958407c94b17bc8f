"""Lets the native program draw, and takes what it says about the drawing."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.recording.native import command_line
from sysdock.scratch import scratch_folder


@dataclass(frozen=True)
class MapOptions:
    """What to draw, and how. `least_size`: least size of the device, for several maps to one scale [B]."""

    curve: str = "hilbert"
    size: int = 1024
    worst: bool = False
    from_byte: int = 0
    length: int | None = None
    find: str | None = None
    least_size: int = 0

    def as_native(self) -> dict[str, object]:
        """The options of the native program."""
        return {"from" if name == "from_byte" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Drawn:
    """A map without words (PNG), what it shows, and the packed pieces where they were asked for."""

    png: bytes
    shown: dict[str, Any]
    pieces: bytes = b""


def drawn(recording: Path, options: MapOptions, *, pieces: bool = False, most: int = 2_000_000) -> Drawn:
    """Draws a recording of a disk; a UserError has the native program's words."""
    with scratch_folder() as folder:
        png, packed = Path(folder) / "map.png", Path(folder) / "pieces"
        wanted = {"pieces": packed, "most": most} if pieces else {"output": png}
        command = command_line("disk map", {**wanted, **options.as_native()}, recording)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            raise _error(done.stderr.decode("utf-8", "replace"), done.returncode)
        shown = json.loads(done.stdout)
        return Drawn(b"" if pieces else png.read_bytes(), shown, packed.read_bytes() if pieces else b"")


def _error(error_text: str, status: int) -> UserError:
    """The message of the native program, taken apart, so that it is printed like any other."""
    fact, _, hint = error_text.strip().removeprefix("sysdock: ").partition("\n\nhint: ")
    return UserError(fact or f"the native program ended with status {status}", hint or None)
