"""Type of options and arguments that name a file or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import os


class NamedPath(click.Path):
    """A path that is not empty; `Path("")` would be the working folder."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as in click: str, bytes or a path
        """See click.ParamType: a usage error for an empty text, such as an unset variable's."""
        if not str(value):
            self.fail("the name is empty; expected a path.", param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path)
