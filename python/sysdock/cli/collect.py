"""`sysdock collect`: takes what agents send."""

from __future__ import annotations

from typing import Any

import click

from sysdock.cli.native_options import become, native_options

_EPILOG = """Example:

\b
  sysdock collect --lake /data/lake --token-file tokens
  sysdock collect --lake /data/lake --token-file tokens --listen 0.0.0.0:8404 --plain

Each line of the token file is a token, followed by the cluster whose agents may use it. Without a cluster,
all agents may.
"""


@click.command("collect", epilog=_EPILOG)
@native_options("collect")
def command(given: dict[str, Any]) -> None:
    """Receive what agents send, and write it into a lake. Several collectors may share a lake."""
    become("collect", given)
