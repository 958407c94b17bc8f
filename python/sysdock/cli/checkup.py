"""`sysdock checkup`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from sysdock.cli.options import as_root_option, color_option, lang_option, open_recordings, open_session
from sysdock.errors import UserError

if TYPE_CHECKING:
    from fractions import Fraction

    from sysdock.analysis import Session
    from sysdock.checkup.plain_run import PlainRun
    from sysdock.checkup.ratio import JobTimes
    from sysdock.checkup.statement import Step
    from sysdock.checkup.user_input import Given

_EPILOG = """Example:

\b
  sysdock checkup -- ./solver input.dat                   # step 1: run and measure it
  sysdock checkup --time job.log --cores 34 --assistant-cores 2
  sysdock checkup --acct /var/log/account/pacct --job solver
  sysdock checkup rec --site site.toml --sar sadf.json    # steps 2 and 3 of a recording
  sysdock checkup rec -o bundle.tar.gz --hash-names       # step 4
  sysdock checkup rec --key bundle.tar.gz.key --translate answer.txt
"""
_PATH = click.Path(path_type=Path, readable=False)


class _WithCommand(click.Command):
    """Takes what follows `--` for the command, so that REC before it may be missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta["sysdock.command"] = args[place + 1 :]
            if not args[place + 1 :]:
                raise click.UsageError("no command after `--`", ctx)
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD...]"]


@click.command("checkup", epilog=_EPILOG, cls=_WithCommand)
@click.argument("recording", metavar="[REC]", required=False, type=_PATH)
@click.option(
    "--time",
    "time_",
    metavar="LOG",
    type=_PATH,
    help="Output of `time` (-v, -p, bash), or a log that contains it.",
)
@click.option("--acct", metavar="FILE", type=_PATH, help="Process accounting file (package acct).")
@click.option("--table", metavar="FILE", type=_PATH, help="CSV or TSV with job, user, real, cores, ...")
@click.option("--job", metavar="NAME", help="Job in --table, or program or pid in --acct.")
@click.option("--user", metavar="T", help="User time: 0.76, 26:27.30, 320ms, 0m0.76s.")
@click.option("--system", metavar="T", help="System time.")
@click.option("--real", metavar="T", help="Real time.")
@click.option(
    "--cores",
    metavar="N",
    type=click.IntRange(1),
    help="Number of cores of the job. Default: from the source, or 1.",
)
@click.option(
    "--assistant-cores",
    metavar="N",
    type=click.IntRange(0),
    help="Number of those cores that do not compute.",
)
@click.option(
    "--site", metavar="SITE.toml", type=_PATH, help="Values of this site, made by `sysdock threshold`."
)
@click.option(
    "--files",
    metavar="PATH",
    multiple=True,
    type=_PATH,
    help="Files or folders that the job has to transfer.",
)
@click.option(
    "--nfsstat", metavar="BEFORE AFTER", nargs=2, type=_PATH, help="`nfsstat -c` or /proc/net/rpc/nfs."
)
@click.option("--llite", metavar="BEFORE AFTER", nargs=2, type=_PATH, help="`lctl get_param llite.*.stats`.")
@click.option("--proc-io", metavar="FILE", type=_PATH, help="Copy of /proc/PID/io near the end of the job.")
@click.option(
    "--sar", metavar="FILE", multiple=True, type=_PATH, help="`sadf -j FILE -- -d`, `sar -d` or `sar -b`."
)
@click.option(
    "-o", "--output", metavar="BUNDLE.tar.gz", type=_PATH, help="New file with what the administrator needs."
)
@as_root_option
@click.option("--hash-names", is_flag=True, help="Hash names in the bundle; the key is written next to it.")
@click.option("--with-commands", is_flag=True, help="Include command lines in the bundle.")
@click.option("--key", metavar="FILE", type=_PATH, help="Key of a bundle, for --translate.")
@click.option(
    "--translate", metavar="FILE", type=_PATH, help="Print a text with its hashes translated back into names."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "json"]),
    default="table",
    help="table (default): for reading. json: exact values.",
)
@lang_option
@color_option
@click.pass_context
def command(ctx: click.Context, /, recording: Path | None, lang: str, format_: str, **options: Any) -> None:
    """Check in four steps whether I/O holds a job back: ratio, volume and load, system calls, bundle.

    CMD is run untraced; its streams and exit status are its own, and the answer goes to standard error.
    """
    cmd: list[str] = ctx.meta.get("sysdock.command", [])
    if options["translate"] or options["key"]:
        _translate(recording, options["key"], options["translate"])
        return
    if not cmd and recording is None and not any(options.values()):
        from sysdock.cli.output import say
        from sysdock.screen.checkup import guide

        say(guide(lang))
        return
    _refuse(recording, cmd, options)
    if not cmd:
        _check(recording, options, None, lang, format_, sys.stdout)
        return
    if options["site"]:
        # Errors in it should not be found only after the job has run.
        from sysdock.checkup.site import read_site

        read_site(options["site"])
    from sysdock.checkup.plain_run import run_plain
    from sysdock.cli.output import remark

    run = run_plain(cmd, as_root=options["as_root"])
    try:
        _check(recording, options, run, lang, format_, sys.stderr)
    except UserError as error:
        # The status of the command is what its caller waits for.
        remark(str(error))
    except OSError:
        pass
    ctx.exit(run.status)


def _refuse(recording: Path | None, cmd: Sequence[str], options: dict[str, Any]) -> None:
    """Ends where options do not go together."""
    sources = [name for name in ("time_", "acct", "table") if options[name]]
    sources += ["user"] if options["user"] or options["real"] or options["system"] else []
    sources += ["cmd"] if cmd else []
    if len(sources) > 1:
        raise UserError(
            "the times of the job are given twice",
            "give one of -- CMD, --time, --acct, --table, --user and --real",
        )
    if sources == ["user"] and not (options["user"] and options["real"]):
        raise UserError("the ratio needs both times", "give --user T and --real T")
    if options["job"] and not (options["acct"] or options["table"]):
        raise UserError("--job chooses from a file", "give --acct FILE or --table FILE", "--job")
    if options["output"] is None and (options["hash_names"] or options["with_commands"]):
        raise UserError("no bundle is made", "give -o bundle.tar.gz", "--hash-names, --with-commands")
    if recording is None and (options["output"] or options["files"]):
        raise UserError("no recording", "make one: `sysdock run -o rec -- CMD`", "-o, --files")
    if options["output"]:
        from sysdock.checkup.site import refuse_place

        refuse_place(options["output"])
        if options["hash_names"]:
            refuse_place(Path(f"{options['output']}.key"))


def _check(
    recording: Path | None,
    options: dict[str, Any],
    run: PlainRun | None,
    lang: str,
    format_: str,
    out: TextIO,
) -> None:
    given = _given(options, run)
    if recording is None:
        _print(_steps(given, None, None, options), lang, format_, out)
        return
    from sysdock.cli.output import remark_on
    from sysdock.sections import require_about

    with open_session(recording) as session:
        require_about(session, "calls")
        bundle: Path | None = options["output"]
        steps = _steps(given, session, bundle, options)
        if bundle:
            from sysdock.checkup.bundle import write_bundle

            write_bundle(
                bundle,
                session,
                steps,
                hashed=options["hash_names"],
                with_commands=options["with_commands"],
                lang=lang,
            )
        _print(steps, lang, format_, out)
        remark_on(session, lang=lang)


def _given(options: dict[str, Any], run: PlainRun | None) -> Given:
    from sysdock.checkup.site import Site, read_site
    from sysdock.checkup.user_input import Given

    job = run.times if run else _times(options)
    return Given(
        site=read_site(options["site"]) if options["site"] else Site(),
        job=job and job.on(options["cores"], options["assistant_cores"]),
        run=run,
        **{name: options[name] for name in ("files", "nfsstat", "llite", "proc_io", "sar")},
    )


def _times(options: dict[str, Any]) -> JobTimes | None:
    if options["time_"]:
        from sysdock.checkup.time_output import read_time_output

        return read_time_output(options["time_"])
    if options["acct"]:
        from sysdock.checkup.accounting import find_process

        return find_process(options["acct"], options["job"])
    if options["table"]:
        from sysdock.checkup.job_table import find_job

        return find_job(options["table"], options["job"])
    if not options["user"]:
        return None
    from sysdock.checkup.ratio import JobTimes
    from sysdock.checkup.times import EXAMPLES, seconds

    times: dict[str, Fraction] = {}
    for name in ("user", "system", "real"):
        if options[name]:
            try:
                times[name] = seconds(options[name])
            except ValueError as error:
                raise UserError(str(error), EXAMPLES, f"--{name}") from None
    return JobTimes(times["user"], times["real"], times.get("system"))


def _steps(given: Given, session: Session | None, bundle: Path | None, options: dict[str, Any]) -> list[Step]:
    from sysdock.checkup.steps import first_steps, step_3, step_4

    steps = [*first_steps(given, session), step_3(session)]
    return [*steps, step_4(steps, session, bundle, options["hash_names"])]


def _print(steps: Sequence[Step], lang: str, format_: str, out: TextIO) -> None:
    if format_ == "json":
        from sysdock.analysis.writing import json_text
        from sysdock.checkup.steps import content

        print(json_text(content(steps, lang), indent=1), file=out, flush=True)
        return
    from sysdock.cli.output import say, terminal_width
    from sysdock.screen.checkup import heads, status_names, step_lines

    say(step_lines(steps, lang, terminal_width(out)), out, heads=heads(lang), statuses=status_names(lang))


def _translate(recording: Path | None, key: Path | None, text: Path | None) -> None:
    if recording is None or key is None or text is None:
        raise UserError(
            "the recording, its key and a text are needed",
            "sysdock checkup REC --key bundle.tar.gz.key --translate answer.txt",
            "--key, --translate",
        )
    from sysdock.checkup.bundle import names_in
    from sysdock.checkup.hashed_names import read_key, translate
    from sysdock.checkup.text_file import read_text
    from sysdock.cli.output import remark

    [opened] = open_recordings(recording)
    translated, unknown = translate(read_text(text, "a text"), read_key(key), names_in(opened))
    sys.stdout.write(translated)
    if unknown:
        remark(f"{unknown:,} hashes belong to no name in this recording, or to another key")
