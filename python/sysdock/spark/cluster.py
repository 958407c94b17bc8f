"""The connection to a Spark: one that exists, or one that is started in this process."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sysdock.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = (
    "write spark (as its own configuration says, else on this machine), spark://HOST:PORT, yarn or k8s://URL"
)
EXTRA_HINT = "pip install 'sysdock[spark]', and Java 17 or newer"
_LOOPBACK = ("127.", "localhost", "[::1]")
# Spark's default of 200 is for large clusters: on two cores a query mostly starts tasks.
_SHUFFLE = "spark.sql.shuffle.partitions"
_SHUFFLES_PER_CORE = 2
_SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.app.name": "sysdock",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # An overflow is an error, as it is on DuckDB.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
}


def connect(engine: str, master: str | None) -> SparkSession:
    """A session of its own on the Spark that `engine` names; a UserError where there is none."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise UserError("Spark is not installed", EXTRA_HINT, f"--engine {engine}") from None
    builder = SparkSession.builder.config(map=_SETTINGS)
    if master:
        builder = builder.master(master)
    if _is_here(master):
        # Otherwise the name of the host is looked up, which need not be an address that workers reach.
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    try:
        with _quiet():
            session = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise UserError(f"Spark does not start: {message(error)}", EXTRA_HINT, f"--engine {engine}") from None
    except Exception as error:  # what py4j passes on is of no common kind
        raise UserError(f"Spark does not answer: {message(error)}", _HINT, f"--engine {engine}") from None
    # It prints each error of a statement, which is raised as well.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    context = session.sparkContext
    context.setLogLevel("OFF")
    own = session.newSession()
    if not context.getConf().contains(_SHUFFLE):
        own.conf.set(_SHUFFLE, str(_SHUFFLES_PER_CORE * context.defaultParallelism))
    return own


@contextmanager
def _quiet() -> Iterator[None]:
    """Java that is started in it has no standard error, where it talks about itself."""
    sys.stderr.flush()
    own = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(own, 2)
        os.close(own)
        os.close(nothing)


def master_of(engine: str) -> str | None:
    """The master that `--engine` names; None: as Spark's own configuration says. UserError: there is none."""
    if engine == "spark":
        configured = (
            os.environ.get("MASTER") or os.environ.get("SPARK_HOME") or os.environ.get("SPARK_CONF_DIR")
        )
        return os.environ.get("MASTER") if configured else "local[*]"
    if engine == "yarn" or re.match(r"(spark|k8s)://.+|local(\[.+\])?$", engine):
        return engine
    raise UserError(f"--engine {engine}: no such engine", _HINT)


def _is_here(master: str | None) -> bool:
    if not master:
        return False
    return master.startswith("local") or urlsplit(master).netloc.startswith(_LOOPBACK)


def message(error: BaseException) -> str:
    """The first line of what Spark says of the first cause, without its Java classes."""
    found: Any = getattr(error, "java_exception", None)
    while found is not None and found.getCause() is not None:
        found = found.getCause()
    text = str(found or error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return re.sub(r"^([\w.$]+(Exception|Error): )+", "", line)[:300]
