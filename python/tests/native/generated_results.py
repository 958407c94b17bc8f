"""What the importer made of a generated log, asked through the views that every analysis uses."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

from generated_system import READS, WRITES
from stated import stated
from sysdock.library import Library
from sysdock.recording import Recording, connect

OBJECT = (
    "CASE WHEN kind IN ('pipe', 'socket') THEN kind"
    " WHEN kind = 'device' OR path IN ('<stdout>', '<stderr>') THEN 'tty' ELSE path END"
)
TRANSFERS = "FROM calls WHERE kind = 'file' AND class IN ('read', 'write') AND transferred_bytes IS NOT NULL"


class Result:
    """A recording of a generated log."""

    def __init__(self, native: Path, folder: Path, logs: dict[str, str]) -> None:
        paths = []
        for ending, text in logs.items():
            paths.append(folder / (f"log.{ending}" if ending else "log"))
            paths[-1].write_text(text)
        self.printed = sum(text.count("\n") for text in logs.values())
        command = [native, "import", *paths, "-o", folder / "recording"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        self.manifest = stated(folder / "recording")
        self.connection = connect(Recording.open(folder / "recording"), Library(), ["calls"])

    def rows(self, sql: str) -> list[tuple]:
        return self.connection.execute(sql).fetchall()

    def calls(self, timed: bool) -> dict[str, tuple]:
        """Per call: number, errors, bytes moved, time. Without durations the time is NULL, which is not zero."""
        found = self.rows(
            "SELECT call, count(*), count(errno), coalesce(sum(transferred_bytes), 0)::BIGINT, sum(dur_ns)::BIGINT"
            " FROM calls GROUP BY call"
        )
        return {call: (*numbers, took or (0 if timed else None)) for call, *numbers, took in found}

    def paths(self, names: set[str], timed: bool) -> dict[str, tuple]:
        """Per path, of the calls with these names: calls, bytes read, bytes written, time."""
        read, written = (self._moved(calls) for calls in (READS, WRITES))
        found = self.rows(
            f"SELECT {OBJECT}, count(*), {read}, {written}, sum(dur_ns)::BIGINT"
            f" FROM calls WHERE path IS NOT NULL AND call IN {(*names, '')} GROUP BY 1"
        )
        return {path: (*numbers, took or (0 if timed else None)) for path, *numbers, took in found}

    def _moved(self, names: tuple[str, ...]) -> str:
        return f"coalesce(sum(transferred_bytes) FILTER (call IN {names}), 0)::BIGINT"

    def _certain(self) -> str:
        columns = [row[0] for row in self.rows("DESCRIBE calls")]
        return "NOT coalesce(offset_uncertain, false)" if "offset_uncertain" in columns else "true"

    def offsets(self) -> dict[str, list[tuple[str, int]]]:
        """Per file: call and offset of each transfer whose offset is certain, sorted."""
        found: dict[str, list] = {}
        for path, call, offset in self.rows(
            f"SELECT path, call, offset_bytes {TRANSFERS} AND {self._certain()}"
        ):
            found.setdefault(path, []).append((call, offset))
        return {path: sorted(pairs, key=str) for path, pairs in found.items()}

    def uncertain(self) -> Counter[str]:
        """Per file: transfers whose offset is not certain."""
        return Counter(path for (path,) in self.rows(f"SELECT path {TRANSFERS} AND NOT {self._certain()}"))

    def threads(self) -> dict[tuple[int, int], int]:
        """Calls per process and thread."""
        return {
            (pid, tid): n for pid, tid, n in self.rows("SELECT pid, tid, count(*) FROM calls GROUP BY ALL")
        }

    def starts(self) -> list[int]:
        """When the calls began."""
        return [start for (start,) in self.rows("SELECT ts_ns FROM calls ORDER BY 1")]
