"""`sysdock collect`: takes what agents send."""

from __future__ import annotations

import click

_EPILOG = """Example:

\b
  sysdock collect --lake /data/lake --token-file tokens
  sysdock collect --lake /data/lake --token-file tokens --listen 0.0.0.0:8404 --plain

A line of the file of tokens is a token, followed by the cluster whose agents may use it; without, all may.
"""


@click.command("collect", epilog=_EPILOG)
@click.option(
    "--listen", default="127.0.0.1:8404", show_default=True, metavar="ADDRESS", help="Address and port."
)
@click.option("--lake", required=True, type=click.Path(), metavar="DIR", help="Where it all goes.")
@click.option(
    "--token-file", required=True, type=click.Path(), metavar="FILE", help="Tokens that agents may have."
)
@click.option("--certificate", type=click.Path(), metavar="FILE", help="Certificate chain (PEM), for HTTPS.")
@click.option("--key", type=click.Path(), metavar="FILE", help="Its key (PEM).")
@click.option("--plain", is_flag=True, help="HTTP also where others may listen.")
@click.option(
    "--land-every",
    default="10s",
    show_default=True,
    metavar="TIME",
    help="How often batches are written; agents wait for it.",
)
@click.option(
    "--land-limit",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="A batch that takes longer into the lake is sent again.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    listen: str,
    lake: str,
    token_file: str,
    certificate: str | None,
    key: str | None,
    plain: bool,
    land_every: str,
    land_limit: str,
) -> None:
    """Receive what agents send, and write it into a lake. Several collectors may share a lake."""
    from sysdock import cli
    from sysdock.recording.native import become_native

    words = [f"--listen={listen}", f"--lake={lake}", f"--token-file={token_file}"]
    words += [f"--land-every={land_every}", f"--land-limit={land_limit}"]
    words += [f"--certificate={certificate}"] if certificate else []
    words += [f"--key={key}"] if key else []
    words += ["--plain"] if plain else []
    ctx.exit(become_native(["collect", *words], as_child=not cli.owns_process))
