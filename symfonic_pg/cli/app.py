"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from symfonic_pg import __version__
from symfonic_pg.cli import demo, embed, index, reading, upkeep, writing
from symfonic_pg.cli.failures import Commands
from symfonic_pg.cli.option_groups import Command, spread

_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="symfonic-pg",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)

_COMMANDS: dict[str, Command] = {
    "demo": demo.demo,
    "migrate": upkeep.migrate,
    "doctor": upkeep.doctor,
    "remember": writing.remember,
    "embed": embed.embed,
    "index": index.index,
    "recall": reading.recall,
    "explain": reading.explain,
    "list": reading.list_memories,
    "count": reading.count,
    "forget": writing.forget,
}
for name, command in _COMMANDS.items():
    app.command(name, context_settings=_HELP)(spread(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"symfonic-pg {__version__}")
        raise typer.Exit


@app.callback()
def symfonic_pg(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Scoped memory for agents on PostgreSQL: remember at a height, recall in order, say why."""
