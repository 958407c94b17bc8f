"""Spark in the place of DuckDB: the same questions, on many machines."""
