"""Spark in the place of DuckDB: the same questions, on many machines."""

from sysdock.spark.engine import SparkEngine
from sysdock.spark.views import SparkViews

__all__ = ["SparkEngine", "SparkViews"]
