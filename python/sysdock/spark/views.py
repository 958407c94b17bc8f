"""The views of a recording, as they are on Spark.

`Views` makes them on DuckDB, which is asked for names and columns only. Their SELECTs are kept, and become
views of Spark when a statement first reads them.
"""

from __future__ import annotations

from collections.abc import Callable

from sysdock.library import Library, Table
from sysdock.recording import Filters, Recording, Views
from sysdock.recording.views import quoted, sum_of


class SparkViews(Views):
    """Views whose rows DuckDB is not asked for. `selects`: the SELECT of each; `sums`: summaries.

    `count`: called with the name of a summary when its SELECT is there, before a view that it reads is
    made again with other columns.
    """

    def __init__(
        self,
        recording: Recording,
        library: Library,
        filters: Filters,
        count: Callable[[SparkViews, str], object],
    ) -> None:
        self.selects: dict[str, str] = {}
        self.sums: set[str] = set()
        self._count_on_spark = count
        super().__init__(recording, library, filters)

    def create(self, name: str, select: str) -> None:
        """Makes a view, and keeps its SELECT."""
        self.selects[name] = select
        super().create(name, select)

    def keep_sum(self, table: Table, select: str) -> None:
        """A summary: DuckDB gets a table without rows, as it is Spark that counts."""
        name = sum_of(table)
        plain = name.strip('"')
        self.selects[plain] = select
        self.sums.add(plain)
        self._count_on_spark(self, plain)
        columns = ", ".join(f"{quoted(column.name)} {column.sql_type}" for column in table.columns)
        self.connection.execute(f"CREATE TABLE {name} ({columns})")
