"""Asks `sysdock-native dump serve`, which has the dump open: a question and an answer a line, as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from sysdock.errors import UserError
from sysdock.recording.native import command_line


class Connection:
    """A dump that is open in a process of its own, which ends with this one. `options`: of `dump serve`.

    UserError: the dump cannot be read.
    """

    def __init__(self, path: Path, options: Mapping[str, object] | None = None) -> None:
        self.path = path
        command = command_line("dump serve", options or {}, path)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.info: dict[str, Any] = self.ask("info")

    def ask(self, op: str, **question: Any) -> dict[str, Any]:
        """The answer to one question (`Question` in crates/dump/src/questions.rs).

        UserError: the dump cannot be read, or there is nothing of that name in it.
        """
        line = json.dumps({"op": op, **question}).encode() + b"\n"
        try:
            self._pipe("stdin").write(line)
            self._pipe("stdin").flush()
            answer = self._pipe("stdout").readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise self._ended()
        found: dict[str, Any] = json.loads(answer)
        if "error" in found:
            raise UserError(found["error"].replace('"', "`"), place=str(self.path))
        result: dict[str, Any] = found["answer"]
        return result

    def close(self) -> None:
        """Ends the process."""
        for name in ("stdin", "stdout", "stderr"):
            with suppress(BrokenPipeError):
                self._pipe(name).close()
        self._process.wait()

    def _pipe(self, name: str) -> IO[bytes]:
        pipe: IO[bytes] = getattr(self._process, name)
        return pipe

    def _ended(self) -> UserError:
        error_text = self._pipe("stderr").read().decode("utf-8", "replace").strip()
        code = self._process.wait()
        fact, _, hint = error_text.partition("\n\nhint: ")
        if not fact:
            return UserError(f"the reader of the dump ended (exit status {code})", place=str(self.path))
        # The native program prints its name, the place, and the fact.
        fact = fact.removeprefix("sysdock: ").removeprefix(f"{self.path}: ")
        return UserError(fact, hint or None, str(self.path))
