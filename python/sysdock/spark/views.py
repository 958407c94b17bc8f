"""The views of a recording, as they are on Spark.

`Views` makes them on DuckDB, which is asked for names and columns only. Their SELECTs are kept, and become
views of Spark when a statement first reads them.
"""

from __future__ import annotations

from sysdock.library import Library, Table
from sysdock.recording import Filters, Recording, Views
from sysdock.recording.views import quoted, sum_of


class SparkViews(Views):
    """Views whose rows DuckDB is not asked for. `selects`: the SELECT of each, by its name in SQL."""

    def __init__(self, recording: Recording, library: Library, filters: Filters | None = None) -> None:
        self.selects: dict[str, str] = {}
        super().__init__(recording, library, filters)

    def create(self, name: str, select: str) -> None:
        """Makes a view, and keeps its SELECT."""
        self.selects[name] = select
        super().create(name, select)

    def keep_sum(self, table: Table, select: str) -> None:
        """A summary: DuckDB gets a table without rows, as it is Spark that counts."""
        name = sum_of(table)
        self.selects[name.strip('"')] = select
        columns = ", ".join(f"{quoted(column.name)} {column.sql_type}" for column in table.columns)
        self.connection.execute(f"CREATE TABLE {name} ({columns})")
