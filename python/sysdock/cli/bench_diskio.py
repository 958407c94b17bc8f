"""`sysdock bench diskio`: what a PostgreSQL would get from a disk."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import lang_option, share_option
from sysdock.errors import UserError

if TYPE_CHECKING:
    from sysdock.diskio.device import Device
    from sysdock.diskio.measuring import Requests
    from sysdock.diskio.predicting import Prediction, QueryTime
    from sysdock.diskio.server import Server
    from sysdock.diskio.transactions import Settings

_EPILOG = """Example:

\b
  sysdock bench diskio /var/lib/postgresql --scale 100
  sysdock bench diskio /var/lib/postgresql --from-postgres 'dbname=app' -o rec
  sysdock bench diskio --measured rec --clients 1,8,64 --workload tpcb
"""
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CLIENTS = "1,2,4,8,16,32,64"
_MOST_CLIENTS = 1000
_READ_BYTES = 256 << 20


@click.command("diskio", epilog=_EPILOG)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Keep measurement and prediction as a recording.",
)
@click.option(
    "--measured",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Predict from this recording; nothing is measured.",
)
@click.option(
    "--from-postgres", "dsn", metavar="DSN", help="Take settings and sizes from this server, by psql."
)
@click.option(
    "--workload",
    "workloads",
    default="simple_update,tpcb,select",
    show_default=True,
    metavar="A,B",
    help="As pgbench -N, -b tpcb-like, -S.",
)
@click.option("--clients", default=_CLIENTS, show_default=True, metavar="N,N", help="Numbers of clients.")
@click.option(
    "--scale",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Of pgbench: 100,000 accounts, 16 MB. Default: 10, or the server's.",
)
@click.option(
    "--pgbench",
    "pgbench_files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="What pgbench printed on a real server with this disk: how far is the prediction off? Repeatable.",
)
@click.option("--shared-buffers", metavar="SIZE", help="Default: 128MiB, or the server's.")
@click.option(
    "--page-cache", metavar="SIZE", help="Memory for the page cache. Default: what is available here."
)
@click.option("--work-mem", metavar="SIZE", help="Default: 4MiB, or the server's.")
@click.option("--max-wal-size", metavar="SIZE", help="Default: 1GiB, or the server's.")
@click.option("--commit-delay", metavar="TIME", help="Default: 0us, or the server's.")
@click.option(
    "--cpu-us",
    type=click.FloatRange(1, 1e7),
    metavar="US",
    help="CPU time of a transaction, server and client. Default: assumed.",
)
@click.option(
    "--cores",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="Processor cores of the server. Default: those here.",
)
@click.option(
    "--for",
    "for_",
    default="1s",
    show_default=True,
    metavar="TIME",
    help="Each measurement takes so long; that of the flush three times.",
)
@click.option("--reads/--no-reads", default=True, show_default=True, help="Measure random reads.")
@share_option
@lang_option
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Predict what PostgreSQL gets from the file system of DIR: transactions a second, and times of queries.

    Measures a log as PostgreSQL writes it, random reads of 8 KiB and a long transfer, in a folder of its own
    below DIR; no database is needed. Says what each number follows from, and what limits it.
    """
    from sysdock.health.units import ns_of

    if (options["directory"] is None) == (options["measured"] is None):
        raise UserError(
            "name a directory to measure, or a recording with --measured", "see sysdock bench diskio --help"
        )
    if options["measured"] and options["output"]:
        raise UserError("--measured has its recording already", "leave -o out")
    settings, server = _settings(options)
    options["real"] = _real(options["pgbench_files"], settings)
    workloads, clients = _workloads(options["workloads"]), _clients(options["clients"])
    for_ns = ns_of(options["for_"])
    if options["measured"]:
        _predict(options["measured"], None, settings, server, workloads, clients, options, is_kept=False)
        return
    ctx.exit(_measure(options, settings, server, workloads, clients, for_ns))


def _real(files: tuple[Path, ...], settings: Settings) -> dict[tuple[str, int], float]:
    """Results of a real server, by workload and clients."""
    from sysdock.diskio import pgbench

    return pgbench.measured(pgbench.read(files), settings.scale)


def _measure(
    options: dict[str, Any],
    settings: Settings,
    server: Server | None,
    workloads: list[str],
    clients: list[int],
    for_ns: int,
) -> int:
    from sysdock.cli.recording import run_with_progress
    from sysdock.diskio.device import plan
    from sysdock.diskio.measuring import count_requests
    from sysdock.health.folder import kept
    from sysdock.health.planned import called, plan_file
    from sysdock.recording.native import native_words

    directory = options["directory"]
    steps = plan(for_ns, max(clients), options["reads"], _READ_BYTES)
    with kept(options["output"]) as folder, plan_file(steps) as file:
        given = {"output": folder, "plan": file, "called": called(), "share": options["share"]}
        code = run_with_progress(native_words("load", given, directory), _FORWARD)
        if code == 0:
            requests = count_requests(directory)
            _predict(
                folder,
                requests,
                settings,
                server,
                workloads,
                clients,
                options,
                is_kept=options["output"] is not None,
            )
    return code


def _predict(
    folder: Path,
    requests: Requests | None,
    settings: Settings,
    server: Server | None,
    workloads: list[str],
    clients: list[int],
    options: dict[str, Any],
    *,
    is_kept: bool,
) -> None:
    from sysdock.analysis import Session
    from sysdock.diskio import device as devices
    from sysdock.diskio import prediction_rows
    from sysdock.diskio.predicting import predictions, queries
    from sysdock.recording import Recording

    with Session(Recording.open(folder)) as session:
        device = devices.read(session)
    found, times = predictions(device, settings, workloads, clients), queries(device, settings)
    rows = prediction_rows.rows(found, device, requests, options["real"])
    query_rows = prediction_rows.query_rows(times)
    if is_kept:
        prediction_rows.keep(folder, rows, query_rows)
    if options["format_"] == "json":
        from sysdock.screen.diskio import explanation

        explained = explanation(device, requests, settings, server, found, options["lang"])
        content = {
            "predictions": rows,
            "queries": query_rows,
            "explanation": explained,
            "notes": list(device.notes),
        }
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    _show(device, requests, settings, server, found, times, options)


def _show(
    device: Device,
    requests: Requests | None,
    settings: Settings,
    server: Server | None,
    found: list[Prediction],
    times: list[QueryTime],
    options: dict[str, Any],
) -> None:
    from sysdock.cli.output import remark, say
    from sysdock.screen import diskio as words
    from sysdock.screen.color import painted_head

    lang, real = options["lang"], options["real"]
    print("\n".join(painted_head(words.table(found, lang, real), sys.stdout)), end="\n\n")
    print("\n".join(painted_head(words.query_table(times, lang), sys.stdout)), end="\n\n")
    say(words.explanation(device, requests, settings, server, found, lang))
    missing = words.not_predicted(times, lang)
    others = sorted(real.keys() - {(each.workload, each.clients) for each in found})
    for workload, clients in others:
        where = "which is not predicted here (--clients, --workload)"
        remark(f"pgbench ran {workload} with {clients} clients, {where}")
    for note in [*device.notes, *([missing] if missing else [])]:
        remark(note)


def _settings(options: dict[str, Any]) -> tuple[Settings, Server | None]:
    """Settings: given values override those of the server, and these override the defaults."""
    from sysdock.diskio import server as servers
    from sysdock.diskio.transactions import Settings
    from sysdock.health.units import bytes_of, ns_of

    cores = options["cores"] or len(os.sched_getaffinity(0))
    own = Settings(cores=cores, page_cache=_available())
    server = servers.ask(options["dsn"], own) if options["dsn"] else None
    given: dict[str, Any] = {
        name: bytes_of(options[name])
        for name in ("shared_buffers", "page_cache", "work_mem", "max_wal_size")
        if options[name]
    }
    if options["scale"]:
        given |= {"scale": options["scale"], "database_bytes": None, "index_part": own.index_part}
    if options["commit_delay"]:
        given["commit_delay_s"] = ns_of(options["commit_delay"]) / 1e9
    if options["cpu_us"]:
        given["cpu_s"] = options["cpu_us"] / 1e6
    return replace(server.settings if server else own, **given), server


def _available() -> int:
    """Memory that the page cache may take here [B]."""
    for line in Path("/proc/meminfo").read_text("utf-8").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def _workloads(text: str) -> list[str]:
    from sysdock.diskio.transactions import WORKLOADS
    from sysdock.errors import did_you_mean

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in WORKLOADS:
            hint = did_you_mean(name, WORKLOADS, f"there are {', '.join(WORKLOADS)}")
            raise UserError(f"no workload `{name}`", hint, "--workload")
    if not names:
        raise UserError("no workload was named", f"there are {', '.join(WORKLOADS)}", "--workload")
    return names


def _clients(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",") if word.strip().isdecimal()]
    if len(numbers) != len(text.split(",")) or not all(1 <= number <= _MOST_CLIENTS for number in numbers):
        raise UserError(
            f"`{text}` is not a list of numbers from 1 to {_MOST_CLIENTS}", "write 1,2,4,8", "--clients"
        )
    return numbers
