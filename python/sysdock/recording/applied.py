"""Applies filters to the views over one recording.

A value the user gave never becomes SQL text: patterns are rows of temporary tables, numbers are variables of
the connection, and the conditions below mention both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sysdock.library import Table
from sysdock.recording.filters import (
    PATH_MATCH,
    Filters,
    glob,
    is_pattern,
    path_rules,
    plain,
    split_list,
    time_ns,
)
from sysdock.recording.manifest import Recording
from sysdock.sentences import Words, fact, listed

if TYPE_CHECKING:
    import duckdb

_COMM_BYTES = 15


class AppliedFilters:
    """Filters, resolved on a connection. `stored` gives the unfiltered rows of a table as a FROM item.

    `notes` says which filters match nothing, and which do not apply to a table that was asked for.
    """

    def __init__(
        self,
        filters: Filters,
        recording: Recording,
        connection: duckdb.DuckDBPyConnection,
        stored: Callable[[str], str],
        notes: list[Words] | None = None,
    ) -> None:
        self.filters = filters
        self.recording = recording
        self.connection = connection
        self.notes: list[Words] = []
        self._stored = stored
        self._by_name = False
        self._resolve()
        # The same filters on another connection: their notes have been reported already.
        self.notes = self.notes if notes is None else notes

    def conditions(self, table: Table) -> list[str]:
        """The filters as conditions on `t`, as far as the table has the columns; the rest becomes a note."""
        filters = self.filters
        found, missing = [], []

        def add(active: Any, condition: str, option: str, *columns: str) -> None:
            if active and all(table.has(column) for column in columns):
                found.append(condition)
            elif active:
                missing.append(option)

        drop = bool(filters.exclude_dir or filters.exclude_suffix)
        drop_condition = "NOT EXISTS (SELECT 1 FROM drop_paths AS d WHERE d.path_id = t.path_id)"
        by_path = "t.path_id IN (SELECT path_id FROM keep_paths)"
        if table.has("to_path_id"):
            # A copy works on two files.
            by_path = f"({by_path} OR t.to_path_id IN (SELECT path_id FROM keep_paths))"
        by_name = "t.comm_id IN (SELECT comm_id FROM keep_comms)"
        by_pid = "t.task_id IN (SELECT task_id FROM keep_tasks)"
        result = table.expression("result")
        add(filters.file, by_path, "--file", "path_id", "task_id")
        add(drop, drop_condition, "--exclude-dir, --exclude-suffix", "path_id", "task_id")
        add(filters.call, "t.call IN (SELECT call FROM keep_calls)", "--call", "call", "ts_ns")
        if filters.process and not self._by_name and not table.has("comm_id"):
            add(filters.process, by_pid, "--process", "task_id")
        else:
            add(filters.process, f"({by_pid} OR {by_name})", "--process", "task_id", "comm_id")
        add(filters.from_, "t.ts_ns >= getvariable('filter_from_ns')", "--from", "ts_ns")
        add(filters.to, "t.ts_ns < getvariable('filter_to_ns')", "--until", "ts_ns")
        if filters.only_ok and result and table.has("errno"):
            found.append(f"t.errno IS NULL AND {result} IS NOT NULL")
        elif filters.only_ok:
            missing.append("--only-ok")
        add(filters.only_errors, "t.errno IS NOT NULL", "--only-errors", "errno")
        # Filters are not expected to affect dictionaries, the environment or the list of issues.
        if missing and table.has("task_id"):
            note = fact("recording/filters_not_applied", filters=listed(missing), table=table.name)
            if note not in self.notes:
                self.notes.append(note)
        return found

    def _resolve(self) -> None:
        filters = self.filters
        if filters.from_:
            self._set("filter_from_ns", time_ns(filters.from_, "--from", self.recording))
        if filters.to:
            self._set("filter_to_ns", time_ns(filters.to, "--until", self.recording))
        if filters.by_path:
            self._resolve_paths()
        if filters.process:
            self._resolve_processes(split_list(filters.process))
        if filters.call:
            self._resolve_calls(split_list(filters.call))

    def _resolve_paths(self) -> None:
        self._fill("path_rules", "side VARCHAR, mode VARCHAR, text VARCHAR", path_rules(self.filters))
        paths = self._stored("paths")
        for side in ("keep", "drop"):
            self.connection.execute(
                f"CREATE TEMP TABLE {side}_paths AS SELECT p.path_id FROM {paths} AS p WHERE EXISTS "
                f"(SELECT 1 FROM path_rules AS r WHERE r.side = '{side}' AND {PATH_MATCH})"
            )
        if self.filters.file and not self._count("keep_paths"):
            given = f"--file {self.filters.file}"
            self.notes.append(fact("recording/matches_no_path_recording", given=given))

    def _resolve_processes(self, items: list[str]) -> None:
        pids = [(int(item),) for item in items if item.isascii() and item.isdigit() and len(item) < 10]
        self._resolve_tasks(pids)
        names = [plain(item) for item in items]
        # A recorded name has at most 15 bytes, as the kernel keeps it.
        kept = [name.encode()[:_COMM_BYTES].decode(errors="ignore") for name in names]
        self._fill("process_names", "name VARCHAR", [(name,) for name in {*names, *kept}])
        commands = self._stored("commands")
        self.connection.execute(
            f"CREATE TEMP TABLE keep_comms AS SELECT c.comm_id FROM {commands} AS c "
            "WHERE c.comm IN (SELECT name FROM process_names)"
        )
        self._by_name = bool(self._count("keep_comms"))
        if not self._by_name and not self._count("keep_tasks"):
            given = f"--process {self.filters.process}"
            self.notes.append(fact("recording/not_process_or_program", given=given))

    def _resolve_tasks(self, pids: list[tuple[int]]) -> None:
        """A process id selects all tasks that had it."""
        self._fill("keep_pids", "pid INTEGER", pids)
        self._fill("keep_tasks", "task_id INTEGER", [])
        if pids and "processes" in self.recording.tables:
            self.connection.execute(
                f"INSERT INTO keep_tasks SELECT p.task_id FROM {self._stored('processes')} AS p "
                "WHERE p.pid IN (SELECT pid FROM keep_pids)"
            )

    def _resolve_calls(self, items: list[str]) -> None:
        self._fill("keep_calls", "call VARCHAR", [(plain(item),) for item in items if not is_pattern(item)])
        patterns = [(glob(item),) for item in items if is_pattern(item)]
        if patterns:
            self._fill("call_patterns", "pattern VARCHAR", patterns)
            calls = self._stored("calls")
            self.connection.execute(
                f"INSERT INTO keep_calls SELECT c.call FROM (SELECT DISTINCT call FROM {calls}) AS c "
                "WHERE EXISTS (SELECT 1 FROM call_patterns AS r WHERE c.call GLOB r.pattern)"
            )
        self._note_unmatched_calls()

    def _note_unmatched_calls(self) -> None:
        """A misspelt name must not look like a call that was never made."""
        matching = (
            f"SELECT 1 FROM {self._stored('calls')} AS c JOIN keep_calls AS k ON k.call = c.call LIMIT 1"
        )
        if not self.connection.execute(matching).fetchall():
            given = f"--call {self.filters.call}"
            self.notes.append(fact("recording/name_no_call_recording", given=given))

    def _set(self, name: str, value: int) -> None:
        self.connection.execute(f"SET VARIABLE {name} = $value", {"value": value})

    def _fill(self, name: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
        self.connection.execute(f"CREATE TEMP TABLE {name} ({columns})")
        if rows:
            marks = ", ".join(f"${number}" for number in range(1, len(rows[0]) + 1))
            self.connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)

    def _count(self, name: str) -> int:
        [(count,)] = self.connection.execute(f"SELECT count(*) FROM {name}").fetchall()
        return int(count)
