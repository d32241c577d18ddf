"""`--help` and `--version`, whose text is a result: a full disk is an error, not a traceback."""

from __future__ import annotations

import click

from ort_lite.cli.output import print_line


def add_help_options(command: click.Command) -> None:
    """Give `command`, and every command of a group, -h and --help."""
    command.add_help_option = False
    command.params.append(
        click.Option(
            ["-h", "--help"], is_flag=True, expose_value=False, is_eager=True, callback=_show_help,
            help="Show this message and exit.",
        )
    )  # fmt: skip
    if isinstance(command, click.Group):
        for below in command.commands.values():
            add_help_options(below)


def add_version_option(command: click.Command, version: str) -> None:
    """Give `command` the option --version."""

    def show(context: click.Context, _: click.Parameter, is_set: bool) -> None:  # noqa: FBT001 - click's
        if is_set and not context.resilient_parsing:
            print_line(f"ort-lite, version {version}")
            context.exit()

    command.params.insert(
        0,
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=show,
            help="Show the version and exit.",
        ),
    )  # fmt: skip


def _show_help(context: click.Context, _: click.Parameter, is_set: bool) -> None:  # noqa: FBT001 - click's
    if is_set and not context.resilient_parsing:
        print_line(context.get_help())
        context.exit()
