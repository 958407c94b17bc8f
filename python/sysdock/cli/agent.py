"""`sysdock agent`: what each job of a node does, counted all the time."""

from __future__ import annotations

import click

from sysdock.cli.options import lang_option
from sysdock.cli.sizes import Mebibytes

_EPILOG = """Example:

\b
  sysdock agent run --lake /data/lake
  sysdock jobs top --lake /data/lake
"""
_RUN_EPILOG = """Example:

\b
  sysdock agent run --lake /data/lake
  sysdock agent run --push https://collector:8404 --token-file /etc/sysdock/token
  sysdock agent run --lake /data/lake --metrics 127.0.0.1:8405

Jobs are those of Slurm, PBS, LSF, Flux, OAR and Grid Engine, units of systemd, containers, and those that the
settings name. While it runs, each system call of the machine takes 0.3 us longer, on a file 0.6 to 0.9 us.
Needs CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE (root has them).
"""
_PRINT_EPILOG = """Example, in an epilogue that runs as root (share/sysdock has those for Slurm and PBS):

\b
  sysdock agent print --job "$SLURM_JOB_ID" --over
"""
_STOP_EPILOG = """Example:

\b
  sysdock agent stop
"""

_spool_option = click.option(
    "--spool",
    default="/var/lib/sysdock/agent",
    show_default=True,
    type=click.Path(),
    metavar="DIR",
    help="Folder of the agent, for data that is not in the lake yet.",
)


@click.group("agent", epilog=_EPILOG)
def command() -> None:
    """Account for the file operations and the resource use of each job on this node."""


@command.command("run", epilog=_RUN_EPILOG)
@click.option("--lake", type=click.Path(), metavar="DIR", help="Write to this lake.")
@click.option("--push", metavar="URL", help="Send to this collector.")
@click.option(
    "--token-file", type=click.Path(), metavar="FILE", help="File with the token for the collector."
)
@click.option(
    "--ca",
    type=click.Path(),
    metavar="FILE",
    help="CA certificates (PEM) to trust instead of the public ones.",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Send what jobs did to this OTLP receiver over HTTP, in addition to the lake or instead of it.",
)
@click.option(
    "--otlp-token-file",
    type=click.Path(),
    metavar="FILE",
    help="File with the bearer token for the receiver.",
)
@click.option(
    "--settings",
    type=click.Path(),
    metavar="FILE",
    help="Settings of the site. Default: /etc/sysdock/agent.toml, if it exists.",
)
@click.option("--cluster", metavar="NAME", help="Name of the cluster.")
@click.option("--node", metavar="NAME", help="Name of this node. Default: that of the host.")
@click.option("--interval", default="10s", show_default=True, metavar="TIME", help="Length of an interval.")
@click.option(
    "--linger",
    default="10s",
    show_default=True,
    metavar="TIME",
    help="A job that has no processes for this time has ended.",
)
@click.option(
    "--spool-limit",
    type=Mebibytes(),
    default=1024,
    show_default="1024M",
    metavar="SIZE",
    help="Maximum size of the spool; beyond it, the oldest data is dropped and counted.",
)
@click.option(
    "--metrics",
    metavar="ADDRESS",
    help="Serve sums of all jobs together in OpenMetrics at http://ADDRESS/metrics, for Prometheus.",
)
@click.option(
    "--metrics-token-file",
    type=click.Path(),
    metavar="FILE",
    help="Tokens for clients that read metrics; required on addresses other than loopback.",
)
@click.option(
    "--metrics-series",
    type=int,
    default=1000,
    show_default=True,
    metavar="N",
    help="Maximum number of series to serve; further ones are summed up, and counted.",
)
@click.option(
    "--no-pin",
    is_flag=True,
    help="Leave no programs in the kernel that keep counting while the agent is not running.",
)
@_spool_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    lake: str | None,
    push: str | None,
    token_file: str | None,
    ca: str | None,
    otlp: str | None,
    otlp_token_file: str | None,
    settings: str | None,
    cluster: str | None,
    node: str | None,
    interval: str,
    linger: str,
    spool_limit: int,
    metrics: str | None,
    metrics_token_file: str | None,
    metrics_series: int,
    no_pin: bool,
    spool: str,
) -> None:
    """Count until Ctrl-C or SIGTERM."""
    given = {
        "lake": lake,
        "push": push,
        "token-file": token_file,
        "ca": ca,
        "otlp": otlp,
        "otlp-token-file": otlp_token_file,
        "settings": settings,
        "cluster": cluster,
        "node": node,
        "metrics": metrics,
        "metrics-token-file": metrics_token_file,
    }
    arguments = [
        f"--interval={interval}",
        f"--linger={linger}",
        f"--spool={spool}",
        f"--spool-limit={spool_limit}",
        f"--metrics-series={metrics_series}",
    ]
    arguments += [f"--{name}={value}" for name, value in given.items() if value is not None]
    arguments += ["--no-pin"] if no_pin else []
    _become(ctx, ["run", *arguments])


@command.command("print", epilog=_PRINT_EPILOG)
@click.option("--job", required=True, metavar="ID", help="Id of the job.")
@click.option("--over", is_flag=True, help="The job has ended: write its totals to the lake.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--brief", is_flag=True, help="Leave out findings, which take about a second.")
@lang_option
@_spool_option
@click.pass_context
def print_(
    ctx: click.Context, /, job: str, over: bool, format_: str, brief: bool, lang: str, spool: str
) -> None:
    """Print the resource use of a job on this node, with advice: for the epilogue of a batch system."""
    arguments = [f"--job={job}", f"--spool={spool}", *(["--over"] if over else [])]
    if brief or format_ == "json":
        _become(ctx, ["print", f"--format={format_}", *arguments])
    from sysdock.recording.native import become_native

    code = become_native(["agent", "print", *arguments], as_child=True)
    if code == 0:
        _print_findings(arguments, lang)
    ctx.exit(code)


def _print_findings(arguments: list[str], lang: str) -> None:
    """Prints the findings of the rules. An epilogue does not fail if they cannot be computed."""
    from sysdock.cli.output import remark, say
    from sysdock.errors import UserError
    from sysdock.jobs.epilogue import findings_of_job, lines_of

    try:
        if lines := lines_of(findings_of_job(arguments, lang)):
            say(lines)
    except (UserError, OSError) as error:
        remark(f"the rules could not be evaluated: {error}")


@command.command("stop", epilog=_STOP_EPILOG)
@click.pass_context
def stop(ctx: click.Context, /) -> None:
    """Remove what a killed agent left in the kernel."""
    _become(ctx, ["stop"])


def _become(ctx: click.Context, arguments: list[str]) -> None:
    from sysdock import cli
    from sysdock.recording.native import become_native

    ctx.exit(become_native(["agent", *arguments], as_child=not cli.owns_process))
