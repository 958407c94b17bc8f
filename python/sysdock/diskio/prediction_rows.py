"""Predictions as rows of a recording, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sysdock.diskio.device import Device
from sysdock.diskio.measuring import Requests
from sysdock.diskio.predicting import Prediction, QueryTime
from sysdock.library import Library
from sysdock.recording.writing import add_part

_NS = 1_000_000_000
TABLE = "diskio_predictions"
QUERIES = "diskio_queries"


def rows(
    found: Sequence[Prediction],
    device: Device,
    requests: Requests | None,
    measured: dict[tuple[str, int], float] | None = None,
) -> list[dict[str, Any]]:
    """Rows of `diskio_predictions`.

    `measured`: transactions a second of a real server, by workload and clients.
    """
    return [
        {
            "workload": each.workload,
            "clients": each.clients,
            "predicted_tps": each.outcome.tps,
            "steady_tps": each.steady_tps,
            "latency_ns": round(each.clients / each.outcome.tps * _NS),
            "limited_by": each.outcome.limit,
            "flush_ns": round(device.flush.mean * _NS),
            "flush_writes": requests.writes if requests else None,
            "flush_flushes": requests.flushes if requests else None,
            "commits_per_flush": each.outcome.commits_per_flush or None,
            "flush_busy": each.outcome.flush_busy,
            "cpu_busy": each.outcome.cpu_busy,
            "checkpoint_every_ns": round(each.checkpoints.every_s * _NS) if each.checkpoints else None,
            "checkpoint_pages": round(each.checkpoints.pages) if each.checkpoints else None,
            "measured_tps": (measured or {}).get((each.workload, each.clients)),
        }
        for each in found
    ]


def query_rows(found: Sequence[QueryTime]) -> list[dict[str, Any]]:
    """Rows of `diskio_queries`."""
    return [
        {
            "query": each.query,
            "cold_ns": None if each.cold_s is None else round(each.cold_s * _NS),
            "warm_ns": round(each.warm_s * _NS),
            "bytes": each.bytes,
            "requests": each.requests,
            "limited_by": each.limit,
        }
        for each in found
    ]


def keep(folder: Path, predicted: Sequence[dict[str, Any]], queries: Sequence[dict[str, Any]]) -> None:
    """Adds both to the recording of the measurement. OSError: it cannot be written."""
    library = Library()
    for name, some in ((TABLE, predicted), (QUERIES, queries)):
        columns = [column.name for column in library.table(name).columns]
        add_part(folder, library, name, [[row[column] for column in columns] for row in some])
