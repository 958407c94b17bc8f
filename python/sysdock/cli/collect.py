"""`sysdock collect`: takes what agents send."""

from __future__ import annotations

import click

_EPILOG = """Example:

\b
  sysdock collect --lake /data/lake --token-file tokens
  sysdock collect --lake /data/lake --token-file tokens --listen 0.0.0.0:8404 --plain

Each line of the token file is a token, followed by the cluster whose agents may use it. Without a cluster,
all agents may.
"""


@click.command("collect", epilog=_EPILOG)
@click.option(
    "--listen", default="127.0.0.1:8404", show_default=True, metavar="ADDRESS", help="Address and port."
)
@click.option("--lake", required=True, type=click.Path(), metavar="DIR", help="Folder of the lake.")
@click.option(
    "--token-file",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="File of the tokens that agents may use.",
)
@click.option("--certificate", type=click.Path(), metavar="FILE", help="Certificate chain (PEM), for HTTPS.")
@click.option("--key", type=click.Path(), metavar="FILE", help="Its key (PEM).")
@click.option(
    "--plain", is_flag=True, help="Permit HTTP without encryption on addresses that other hosts can reach."
)
@click.option(
    "--land-every",
    default="10s",
    show_default=True,
    metavar="TIME",
    help="How often batches are written to the lake; agents wait for this.",
)
@click.option(
    "--land-limit",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Agents send a batch again if writing it to the lake takes longer.",
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
