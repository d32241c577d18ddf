"""`-v`, before a command or after it."""

from __future__ import annotations

import logging

import click

LEVELS = (logging.INFO, logging.DEBUG)


def add_verbose_option(command: click.Command) -> None:
    """Give `command`, and every command of a group, the option -v."""
    command.params.append(
        click.Option(
            ["-v", "--verbose"], count=True, expose_value=False, callback=_log_more,
            help="Log more to stderr; -vv logs every decision.",
        )
    )  # fmt: skip
    if isinstance(command, click.Group):
        for below in command.commands.values():
            add_verbose_option(below)


def _log_more(context: click.Context, _: click.Parameter, count: int) -> None:
    """Log what was asked for until the command has ended."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if not count:
        return
    logger = logging.getLogger("ort_lite")
    before, level = logger.level, LEVELS[min(count, len(LEVELS)) - 1]
    logger.setLevel(min(level, before or level))
    context.call_on_close(lambda: logger.setLevel(before))
