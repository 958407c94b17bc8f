"""`sysdock help`."""

from __future__ import annotations

import click

from sysdock.errors import UserError, did_you_mean

_EPILOG = """Example:

\b
  sysdock help                 all verbs
  sysdock help run
  sysdock help disk scan
"""


@click.command("help", epilog=_EPILOG)
@click.argument("verbs", nargs=-1, metavar="[VERB...]")
@click.pass_context
def command(ctx: click.Context, /, verbs: tuple[str, ...]) -> None:
    """Show the help of a verb, as `sysdock VERB --help` does; without VERB, list the verbs."""
    shown = ctx.find_root()
    for verb in verbs:
        group = shown.command
        found = group.get_command(shown, verb) if isinstance(group, click.Group) else None
        if found is None:
            known = group.list_commands(shown) if isinstance(group, click.Group) else []
            otherwise = f"see `{shown.command_path} --help`"
            raise UserError(f"unknown verb `{verb}`", did_you_mean(verb, known, otherwise))
        shown = found.make_context(verb, [], parent=shown, resilient_parsing=True)
    print(shown.command.get_help(shown))
