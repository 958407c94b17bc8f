"""`sysdock agent`: what each job of a node does, counted all the time."""

from __future__ import annotations

from typing import Any

import click

from sysdock.cli.native_options import become, native_options
from sysdock.cli.options import lang_option

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
_STATUS_EPILOG = """Example:

\b
  sysdock agent status
"""
_STOP_EPILOG = """Example:

\b
  sysdock agent stop
"""


@click.group("agent", epilog=_EPILOG)
def command() -> None:
    """Account for the file operations and the resource use of each job on this node."""


@command.command("run", epilog=_RUN_EPILOG)
@native_options("agent run")
def run(given: dict[str, Any]) -> None:
    """Count until Ctrl-C or SIGTERM."""
    become("agent run", given)


@command.command("print", epilog=_PRINT_EPILOG)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--brief", is_flag=True, help="Leave out findings, which take about a second.")
@lang_option
@native_options("agent print", without={"format"})
@click.pass_context
def print_(ctx: click.Context, /, format_: str, brief: bool, lang: str, given: dict[str, Any]) -> None:
    """Print the resource use of a job on this node, with advice: for the epilogue of a batch system."""
    if brief or format_ == "json":
        become("agent print", {"format": format_, **given})
    from sysdock.recording.native import become_native, native_words

    code = become_native(native_words("agent print", given), as_child=True)
    if code == 0:
        _print_findings(given, lang)
    ctx.exit(code)


def _print_findings(given: dict[str, Any], lang: str) -> None:
    """Prints the findings of the rules. An epilogue does not fail if they cannot be computed."""
    from sysdock.cli.output import remark, say
    from sysdock.errors import UserError
    from sysdock.jobs.epilogue import findings_of_job, lines_of

    try:
        if lines := lines_of(findings_of_job(given, lang)):
            say(lines)
    except (UserError, OSError) as error:
        remark(f"the rules could not be evaluated: {error}")


@command.command("status", epilog=_STATUS_EPILOG)
@native_options("agent status")
def status(given: dict[str, Any]) -> None:
    """Print how the agent is: what waits to be sent, what is not taken, and why."""
    become("agent status", given)


@command.command("stop", epilog=_STOP_EPILOG)
def stop() -> None:
    """Remove what a killed agent left in the kernel."""
    become("agent stop", {})
