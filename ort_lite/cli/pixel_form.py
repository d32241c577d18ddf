"""How pixels become a model's numbers: --scale, --mean, --std, --bgr."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from ort_lite.cli.exit_codes import ExitCode

WHITE = 255.0


@dataclass(frozen=True, slots=True)
class PixelForm:
    """How an image's pixels are converted for a floating-point input.

    Attributes:
        scale: Each value, 0 to 255, is multiplied by it first.
        mean: Then this is subtracted, by channel or the same for all.
        std: Then it is divided by this.
        bgr: Whether blue is the first channel instead of red.
    """

    scale: float = 1 / WHITE
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    bgr: bool = False

    def text(self) -> str:
        """The conversion as text for a message."""
        order = "BGR" if self.bgr else "RGB"
        steps = f"value * {self.scale:.6g}"
        if any(self.mean):
            steps = f"({steps} - {_join_numbers(self.mean)})"
        if any(number != 1 for number in self.std):
            steps = f"{steps} / {_join_numbers(self.std)}"
        return f"{order}, {steps}"


def pixel_options(command: Callable[..., ExitCode]) -> Callable[..., ExitCode]:
    """Give a command --scale, --mean, --std and --bgr, as its argument `form`."""

    @click.option(
        "--scale", type=float, default=1 / WHITE, metavar="FACTOR",
        help="Multiply an image's values (0 to 255) by this. Default: 1/255.",
    )  # fmt: skip
    @click.option("--mean", default="0", metavar="M[,M,M]", help="Subtract this after --scale.")
    @click.option("--std", default="1", metavar="S[,S,S]", help="Divide by this after --mean.")
    @click.option("--bgr", is_flag=True, help="Use BGR channel order instead of RGB.")
    @wraps(command)
    def wrapper(
        *args: Any,  # noqa: ANN401 - click's
        scale: float,
        mean: str,
        std: str,
        bgr: bool,
        **kwargs: Any,  # noqa: ANN401 - click's
    ) -> ExitCode:
        divisors = _numbers(std, "--std")
        if 0 in divisors:
            raise click.UsageError(f"--std {std}: must not be 0")
        form = PixelForm(scale, _numbers(mean, "--mean"), divisors, bgr)
        return command(*args, form=form, **kwargs)

    return wrapper


def _numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, 3) or not all(map(isfinite, numbers)):
        raise click.UsageError(
            f"{option} {text}: expected one number, or three such as 0.5,0.5,0.5"
        )
    return numbers


def _join_numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values).join("()" if len(values) > 1 else ("", ""))
