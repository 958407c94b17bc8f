"""Instances of the engine: one for each session, or one after another for many short sessions of a process.

Starting an instance takes some 17 ms of CPU time, as it makes all its functions known: a good part of what it
takes to ask one question. A process that asks thousands and does not fork calls `reuse` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sysdock.scratch import scratch_folder

if TYPE_CHECKING:
    import tempfile

    from sysdock.engine import duckdb
    from sysdock.recording.views import Settings


@dataclass
class Instance:
    """A running engine, and the folder for what does not fit into memory, if it has one of its own."""

    connection: duckdb.DuckDBPyConnection
    spill: tempfile.TemporaryDirectory[str] | None
    # Sessions with the same key may use it one after another.
    key: tuple[object, ...]

    def close(self) -> None:
        """Ends it."""
        self.connection.close()
        if self.spill:
            self.spill.cleanup()


# None: each session has an instance of its own.
_idle: dict[tuple[object, ...], Instance] | None = None


def reuse() -> None:
    """From now on, sessions leave their instances to later ones.

    Not for a process that forks: the child would have the instance without its threads.
    """
    global _idle
    _idle = {} if _idle is None else _idle


def start(config: Settings, kind: str) -> Instance:
    """An instance with these settings, for sessions of one kind."""
    from sysdock.engine import duckdb

    key = (kind, *sorted((name, str(value)) for name, value in config.items()))
    if _idle and key in _idle:
        return _idle.pop(key)
    spill = None
    if "temp_directory" not in config:
        # DuckDB would spill into the working folder, which may be the user's project.
        spill = scratch_folder()
        config = {**config, "temp_directory": spill.name}
    return Instance(duckdb.connect(config=config), spill, key)


def end(instance: Instance, is_shared: bool) -> None:
    """Ends an instance, or leaves it to a later session. `is_shared`: other threads may still use it."""
    if _idle is None or is_shared or instance.key in _idle or not _emptied(instance):
        instance.close()
    else:
        _idle[instance.key] = instance


def _emptied(instance: Instance) -> bool:
    """Whether nothing of a session is left in it; what is temporary went with the session's connection."""
    from sysdock.engine import duckdb

    connection = instance.connection
    try:
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute('DROP TABLE "{}"'.format(name.replace('"', '""')))
    except duckdb.Error:
        return False
    return True
