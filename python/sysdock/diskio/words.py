"""What a prediction follows from, in words, in English and Japanese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sysdock.analysis.writing import table_lines
from sysdock.diskio.device import Device
from sysdock.diskio.measuring import Requests
from sysdock.diskio.predicting import FETCHES, Prediction, QueryTime, rotation
from sysdock.diskio.server import Server
from sysdock.diskio.transactions import CPU_S, Settings
from sysdock.library import Column
from sysdock.text import counted, human_bytes, human_ns

_LIMITS = {
    "flush": ("flush of the log", "ログのフラッシュ"),
    "reads": ("reads", "読み出し"),
    "locks": ("row locks", "行ロック"),
    "cpu": ("CPU", "CPU"),
}
_QUERIES = {
    "scan": ("all of pgbench_accounts read", "pgbench_accounts の全件走査"),
    "fetch": (f"{FETCHES} rows by index, at random", f"索引によるランダムな {FETCHES} 行の取得"),
    "sort": ("all rows sorted by a column that has no index", "索引のない列による全行のソート"),
    "vacuum": ("vacuum of it, each page changed", "全ページが更新されたあとの VACUUM"),
}
_DIFFERS = 0.02


def limit(name: str, lang: str) -> str:
    """What limits a row."""
    return _LIMITS[name][lang == "ja"]


def query(name: str, lang: str) -> str:
    """What a query does."""
    return _QUERIES[name][lang == "ja"]


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
    return [line[lang == "ja"] for line in lines]


def _flush(device: Device, requests: Requests | None) -> list[tuple[str, str]]:
    flush = time(device.flush.mean)
    if requests is None:
        head = (
            f"One commit is one flush of the log: {flush}.",
            f"1 コミットはログのフラッシュ 1 回で、{flush} かかります。",
        )
    else:
        head = (
            f"One commit is one flush of the log = {requests.writes:.1f} writes and "
            f"{requests.flushes:.1f} cache flushes of the device = {flush}.",
            f"1 コミットはログのフラッシュ 1 回 = デバイスへの書き込み {requests.writes:.1f} 回とキ"
            "ャッシュフラッシュ "
            f"{requests.flushes:.1f} 回 = {flush} です。",
        )
    lines = [head]
    if device.is_paced:
        lines.append(
            (
                "A control group limit makes it slow, not the device.",
                "遅いのはデバイスではなく、cgroup の制限のためです。",
            )
        )
    elif turns := rotation(device.flush.mean):
        per_minute, one, count = turns
        lines.append(
            (
                f"That is {counted(count, 'rotation')} of a disk with {per_minute:,} rotations/min "
                f"({time(one)} each).",
                f"これは {per_minute:,} rpm のディスクの {count} 回転 (1 回転 {time(one)}) に当たります。",
            )
        )
    return lines


def _groups(found: Sequence[Prediction]) -> list[tuple[str, str]]:
    groups = [each for each in found if each.outcome.commits_per_flush > 1.05]
    if not groups:
        return []
    most = max(groups, key=lambda each: each.outcome.commits_per_flush)
    count, clients = most.outcome.commits_per_flush, most.clients
    return [
        (
            f"Commits that arrive while a flush is in progress share the next one: with {clients} "
            f"clients, group commit puts {count:.1f} into a flush.",
            f"フラッシュ中に到着したコミットは次のフラッシュにまとめられます。{clients} クライアントでは"
            f" 1 回のフラッシュに {count:.1f} コミットが入ります。",
        )
    ]


def _reads(device: Device, settings: Settings, found: Sequence[Prediction]) -> list[tuple[str, str]]:
    if not found:
        return []
    share, size = settings.miss_share, human_bytes(settings.size)
    reads = settings.misses(settings.shared_buffers + settings.page_cache)
    if not share:
        lines = [
            (
                f"The database ({size}) fits into shared buffers and page cache: once they are "
                "warm, nothing is read from the device.",
                f"データベース ({size}) は共有バッファとページキャッシュに収まるため、ウォームアップ後はデ"
                "バイスから読みません。",
            )
        ]
    else:
        one = time(1 / device.reads(1))
        lines = [
            (
                f"Of {size}, {share:.0%} are in no cache: a transaction reads {reads:.2f} pages "
                f"from the device, {one} each.",
                f"{size} のうち {share:.0%} はどのキャッシュにもなく、1 トランザクションはデバイスか"
                f"ら {reads:.2f} ページ (各 {one}) を読みます。",
            )
        ]
    if (driven_out := settings.misses(settings.shared_buffers)) > _DIFFERS:
        buffers = human_bytes(settings.shared_buffers)
        lines.append(
            (
                f"It is larger than shared buffers ({buffers}): a transaction that changes something drives "
                f"out {driven_out:.2f} changed pages, which are written at once.",
                f"共有バッファ ({buffers}) には収まらず、更新するトランザクションは変更済みページ "
                f"{driven_out:.2f} 個を追い出し、それらはすぐに書き込まれます。",
            )
        )
    return lines


def _checkpoints(found: Sequence[Prediction]) -> list[tuple[str, str]]:
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
        (
            f"`steady` has checkpoints: with {most.clients} clients ({most.workload}) one each "
            f"{every}, of {some.pages:,.0f} pages; "
            f"with images of pages a transaction logs {image}.",
            f"`steady` はチェックポイントを含みます。{most.clients} クライアント ({most.workload}) "
            f"では {every} ごとに {some.pages:,.0f} ページを書き、"
            f"ページイメージを含むログは 1 トランザクションあたり {image} です。",
        )
    ]


def _server(server: Server | None) -> list[tuple[str, str]]:
    if server is None:
        return []
    lines = []
    if not server.has_pgbench:
        scale = server.settings.scale
        lines.append(
            (
                f"`{server.database}` has no tables of pgbench: branches and queries are of scale {scale}.",
                f"`{server.database}` に pgbench の表がないため、"
                f"支店の数とクエリはスケール {scale} のものです。",
            )
        )
    if not server.fsync:
        lines.append(
            (
                "The server has fsync off: no commit waits for the disk, and a power cut may "
                "destroy the database.",
                "サーバーの fsync が off です。コミットはディスクを待たず、停電でデータベースが壊れ"
                "るおそれがあります。",
            )
        )
    elif not server.settings.synchronous_commit:
        lines.append(
            (
                "The server has synchronous_commit off: no commit waits for the disk; a crash "
                "loses the last ones.",
                "サーバーの synchronous_commit が off です。コミットはディスクを待たず、障害時に直"
                "近のコミットが失われます。",
            )
        )
    if server.sync_method != "fdatasync":
        lines.append(
            (
                f"The server uses wal_sync_method {server.sync_method}; fdatasync was measured.",
                f"サーバーの wal_sync_method は {server.sync_method} ですが、測定は fdatasync です。",
            )
        )
    if server.commits_per_flush:
        count = server.commits_per_flush
        share = f"{server.image_share or 0:.0%}"
        lines.append(
            (
                f"Since its statistics were reset the server had {count:.1f} commits for each "
                f"flush; {share} of its log were images of pages.",
                f"統計のリセット以降、サーバーは 1 フラッシュあたり {count:.1f} コミットで、ログの "
                f"{share} はページイメージでした。",
            )
        )
    if server.settings.buffer_misses is not None:
        misses = f"{server.settings.buffer_misses:.1%}"
        lines.append(
            (
                f"Of the pages asked for, {misses} were not in shared buffers.",
                f"要求されたページの {misses} は共有バッファにありませんでした。",
            )
        )
    return lines


def _assumed(settings: Settings, found: Sequence[Prediction]) -> list[tuple[str, str]]:
    names = list(dict.fromkeys(each.workload for each in found))
    if settings.cpu_s is not None or not names:
        return []
    times = ", ".join(f"{CPU_S[name] * 1e6:.0f} µs ({name})" for name in names)
    return [
        (
            f"Assumed: {times} of CPU for a transaction, on {settings.cores} cores; --cpu-us has another.",
            f"仮定: 1 トランザクションの CPU 時間 {times}、{settings.cores} コア。--cpu-us で変えられます。",
        )
    ]


def not_predicted(times: Sequence[QueryTime], lang: str) -> str | None:
    """That some queries could not be predicted."""
    if all(each.cold_s is not None for each in times):
        return None
    return (
        "some queries were not predicted: what they need was not measured",
        "一部のクエリは、必要な測定がないため予測していません",
    )[lang == "ja"]


def table(
    found: Sequence[Prediction], lang: str, real: Mapping[tuple[str, int], float] | None = None
) -> list[str]:
    """A line for each prediction; with `real`, what a server did, by workload and clients, next to it."""
    heads = {
        "en": (
            "workload",
            "clients",
            "tps",
            "steady tps",
            "latency",
            "commits/flush",
            "flush busy",
            "CPU busy",
            "limited by",
        ),
        "ja": (
            "ワークロード",
            "クライアント",
            "tps",
            "定常 tps",
            "レイテンシ",
            "コミット/フラッシュ",
            "フラッシュ中",
            "CPU 使用",
            "制限要因",
        ),
    }
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
    head = list(heads[lang])
    if real:
        head[3:3] = ("measured tps", "error") if lang == "en" else ("実測 tps", "誤差")
    return _lines(head, lines)


def _beside(each: Prediction, real: Mapping[tuple[str, int], float] | None) -> tuple[str, ...]:
    """What a server did instead, and how far the prediction is off; empty where that is not known."""
    if not real:
        return ()
    tps = real.get((each.workload, each.clients))
    return (_rate(tps), f"{each.outcome.tps / tps - 1:+.0%}") if tps else ("", "")


def query_table(times: Sequence[QueryTime], lang: str) -> list[str]:
    """A line for each query."""
    heads = {
        "en": ("query", "all from the device", "all in memory", "limited by"),
        "ja": ("クエリ", "すべてデバイスから", "すべてメモリ上", "制限要因"),
    }
    lines = [
        (
            query(each.query, lang),
            "-" if each.cold_s is None else time(each.cold_s),
            time(each.warm_s),
            limit(each.limit, lang),
        )
        for each in times
    ]
    return _lines(heads[lang], lines)


def _lines(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    columns = [Column(name, "VARCHAR", None, "") for name in heads]
    return list(table_lines(columns, lines, None))


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
