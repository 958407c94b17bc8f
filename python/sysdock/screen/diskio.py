"""The basis of a prediction, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sysdock.analysis.writing import table_lines
from sysdock.diskio.device import Device
from sysdock.diskio.measuring import Requests
from sysdock.diskio.predicting import FETCHES, Prediction, QueryTime, rotation
from sysdock.diskio.server import Server
from sysdock.diskio.transactions import CPU_S, Settings
from sysdock.library import Column
from sysdock.sentences import Words, fact, say
from sysdock.text import human_bytes, human_ns

_LIMITS: dict[str, Words] = {
    "flush": fact("diskio/flush_log"),
    "reads": fact("diskio/reads"),
    "locks": fact("diskio/row_locks"),
    "cpu": "CPU",
}
_QUERIES = {
    "scan": fact("diskio/all_pgbench_accounts_read"),
    "fetch": fact("diskio/rows_index_random", fetches=FETCHES),
    "sort": fact("diskio/all_rows_sorted_column"),
    "vacuum": fact("diskio/vacuum_each_page_changed"),
}
_DIFFERS = 0.02
# Columns behind the rates, as `knowhow/sentences/diskio.toml` calls them.
_REST = ["steady_tps", "latency", "commits_per_flush", "flush_busy", "cpu_busy", "limited_by"]


def limit(name: str, lang: str) -> str:
    """The limit of a row, in words."""
    return say(_LIMITS[name], lang)


def query(name: str, lang: str) -> str:
    """A query, in words."""
    return say(_QUERIES[name], lang)


def time(seconds: float) -> str:
    """A time as people read it."""
    return human_ns(seconds * 1e9)


def explanation(
    device: Device,
    requests: Requests | None,
    settings: Settings,
    server: Server | None,
    found: Sequence[Prediction],
    lang: str,
) -> list[str]:
    """Sentences: a flush, group commit, reads, checkpoints, what was assumed."""
    lines = [
        *_flush(device, requests),
        *_groups(found),
        *_reads(device, settings, found),
        *_checkpoints(found),
    ]
    lines += [*_server(server), *_assumed(settings, found)]
    return [say(line, lang) for line in lines]


def _flush(device: Device, requests: Requests | None) -> list[Words]:
    flush = time(device.flush.mean)
    if requests is None:
        head = fact("diskio/one_commit_one_flush", flush=flush)
    else:
        head = fact(
            "diskio/one_commit_one_flush_2", writes=requests.writes, flushes=requests.flushes, flush=flush
        )
    lines: list[Words] = [head]
    if device.is_paced:
        lines.append(fact("diskio/control_group_limit_makes"))
    elif turns := rotation(device.flush.mean):
        per_minute, one, count = turns
        lines.append(
            fact("diskio/disk_rotations_min_each", count=count, per_minute=per_minute, time=time(one))
        )
    return lines


def _groups(found: Sequence[Prediction]) -> list[Words]:
    groups = [each for each in found if each.outcome.commits_per_flush > 1.05]
    if not groups:
        return []
    most = max(groups, key=lambda each: each.outcome.commits_per_flush)
    count, clients = most.outcome.commits_per_flush, most.clients
    return [fact("diskio/commits_arrive_while_flush", clients=clients, count=count)]


def _reads(device: Device, settings: Settings, found: Sequence[Prediction]) -> list[Words]:
    if not found:
        return []
    share, size = settings.miss_share, human_bytes(settings.size)
    reads = settings.misses(settings.shared_buffers + settings.page_cache)
    if not share:
        lines: list[Words] = [fact("diskio/database_fits_into_shared", size=size)]
    else:
        one = time(1 / device.reads(1))
        lines = [fact("diskio/no_cache_transaction_reads", size=size, share=share, reads=reads, one=one)]
    if (driven_out := settings.misses(settings.shared_buffers)) > _DIFFERS:
        buffers = human_bytes(settings.shared_buffers)
        lines.append(fact("diskio/larger_than_shared_buffers", buffers=buffers, driven_out=driven_out))
    return lines


def _checkpoints(found: Sequence[Prediction]) -> list[Words]:
    hit = [each for each in found if each.checkpoints and each.steady_tps is not None]
    hit = [each for each in hit if (each.steady_tps or 0) < each.outcome.tps * (1 - _DIFFERS)]
    if not hit:
        return []
    most = min(hit, key=lambda each: (each.steady_tps or 0) / each.outcome.tps)
    some = most.checkpoints
    if some is None:
        return []
    every, image = time(some.every_s), human_bytes(some.wal_bytes)
    return [
        fact(
            "diskio/steady_has_checkpoints_clients",
            clients=most.clients,
            workload=most.workload,
            every=every,
            pages=some.pages,
            image=image,
        )
    ]


def _server(server: Server | None) -> list[Words]:
    if server is None:
        return []
    lines: list[Words] = []
    if not server.has_pgbench:
        scale = server.settings.scale
        lines.append(fact("diskio/has_no_tables_pgbench", database=server.database, scale=scale))
    if not server.fsync:
        lines.append(fact("diskio/server_has_fsync_off"))
    elif not server.settings.synchronous_commit:
        lines.append(fact("diskio/server_has_synchronous_commit"))
    if server.sync_method != "fdatasync":
        lines.append(fact("diskio/server_uses_wal_sync", sync_method=server.sync_method))
    if server.commits_per_flush:
        count = server.commits_per_flush
        share = f"{server.image_share or 0:.0%}"
        lines.append(fact("diskio/since_statistics_reset_server", count=count, share=share))
    if server.settings.buffer_misses is not None:
        misses = f"{server.settings.buffer_misses:.1%}"
        lines.append(fact("diskio/pages_asked_not_shared", misses=misses))
    return lines


def _assumed(settings: Settings, found: Sequence[Prediction]) -> list[Words]:
    names = list(dict.fromkeys(each.workload for each in found))
    if settings.cpu_s is not None or not names:
        return []
    times = ", ".join(f"{CPU_S[name] * 1e6:.0f} µs ({name})" for name in names)
    return [fact("diskio/assumed_cpu_transaction_cores", times=times, cores=settings.cores)]


def not_predicted(times: Sequence[QueryTime], lang: str) -> str | None:
    """A text that some queries could not be predicted."""
    if all(each.cold_s is not None for each in times):
        return None
    return say(fact("diskio/some_queries_not_predicted"), lang)


def table(
    found: Sequence[Prediction], lang: str, real: Mapping[tuple[str, int], float] | None = None
) -> list[str]:
    """A line for each prediction; with `real`, what a server did, by workload and clients, next to it."""
    lines = [
        (
            each.workload,
            str(each.clients),
            _rate(each.outcome.tps),
            *_beside(each, real),
            "" if each.steady_tps is None else _rate(each.steady_tps),
            time(each.clients / each.outcome.tps),
            f"{each.outcome.commits_per_flush:.1f}" if each.outcome.commits_per_flush else "",
            f"{each.outcome.flush_busy:.0%}",
            f"{each.outcome.cpu_busy:.0%}",
            limit(each.outcome.limit, lang),
        )
        for each in found
    ]
    names = ["workload", "clients", "tps", *(["measured_tps", "error"] if real else []), *_REST]
    return _lines(_heads(names, lang), lines)


def _beside(each: Prediction, real: Mapping[tuple[str, int], float] | None) -> tuple[str, ...]:
    """Results of a server, and the error of the prediction; empty if there are none."""
    if not real:
        return ()
    tps = real.get((each.workload, each.clients))
    return (_rate(tps), f"{each.outcome.tps / tps - 1:+.0%}") if tps else ("", "")


def query_table(times: Sequence[QueryTime], lang: str) -> list[str]:
    """A line for each query."""
    lines = [
        (
            query(each.query, lang),
            "-" if each.cold_s is None else time(each.cold_s),
            time(each.warm_s),
            limit(each.limit, lang),
        )
        for each in times
    ]
    return _lines(_heads(["query", "all_from_device", "all_in_memory", "limited_by"], lang), lines)


def _heads(names: Sequence[str], lang: str) -> list[str]:
    return [say(fact(f"diskio/head_{name}"), lang) for name in names]


def _lines(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    columns = [Column(name, "VARCHAR", None, "") for name in heads]
    return list(table_lines(columns, lines, None))


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
