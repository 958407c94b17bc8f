"""DuckDB without what an analysis never calls: `from sysdock.engine import duckdb`, where it is needed.

The package `duckdb` imports relations, expressions and sources of data frames before it hands out the names
of its extension module. That takes four times as long as the module itself, for each command. `connect()`,
which gives a connection to a caller, imports the package: it adds methods to the connections.
"""

try:
    import _duckdb as duckdb
except ImportError:
    # A build of DuckDB that names its extension module in another way.
    import duckdb  # type: ignore[no-redef]

__all__ = ["duckdb"]
