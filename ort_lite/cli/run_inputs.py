"""Chooses the inputs of `ort-lite run` and `bench`: from files, or random."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode, exit_code_of
from ort_lite.cli.pixel_form import PixelForm
from ort_lite.cli.session_choice import key_value
from ort_lite.context.quote_argument import quote_argument
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np

    from ort_lite.model.info import NodeArg
    from ort_lite.session import InferenceSession

    Array = np.ndarray[Any, np.dtype[Any]]
SHAPE_FORM = "INPUT=1x3x224x224"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedChoice:
    """The inputs on which a command runs a model.

    Attributes:
        files: `[NAME=]FILE`; random inputs without any.
        shapes: Of random inputs, by name.
        form: How pixels of images become numbers.
    """

    files: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    seed: int = 0
    form: PixelForm | None = None


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`INPUT=1x3x224x224`, several times; a scalar is `INPUT=`."""
    parsed: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, value = key_value(text, "--shape", SHAPE_FORM)
        dims = value.split("x") if value else []
        if not all(dim.isascii() and dim.isdigit() for dim in dims):
            raise click.UsageError(f"--shape {text}: expected {SHAPE_FORM}")
        parsed[name] = tuple(int(dim) for dim in dims)
    return parsed


def make_feed(session: InferenceSession, choice: FeedChoice) -> dict[str, object]:
    """Inputs out of files, or random ones.

    Raises:
        CommandError: A file cannot be read or fits no input, or an input is missing.
    """
    from ort_lite.cli.feeds import feed_of_files, guessed_feed
    from ort_lite.model.shape_guess import guessed_shape

    inputs = session.get_inputs()
    metadata = session.get_modelmeta().custom_metadata_map
    _require_shapes(choice.shapes, inputs)
    if not choice.files:
        return {**guessed_feed(inputs, choice.shapes, choice.seed, metadata)}
    shapes = {arg.name: guessed_shape(arg, metadata) for arg in inputs}
    _require_images(choice)
    feed = feed_of_files(
        choice.files, inputs, {**shapes, **choice.shapes}, choice.form or PixelForm()
    )
    missing = [arg.name for arg in inputs if arg.name not in feed]
    if missing:
        raise CommandError(
            ExitCode.USAGE,
            f"{', '.join(choice.files)} has no array for input {', '.join(missing)}; it has "
            f"{', '.join(feed)}",
        )
    _require_types(feed, inputs, choice.files)
    _require_sizes(feed, inputs, choice.files)
    return {**feed}


def _require_types(
    feed: Mapping[str, Array], inputs: Sequence[NodeArg], files: Sequence[str]
) -> None:
    """Check that arrays of numbers have the model's element types.

    Raises:
        CommandError: One has another; a session would name neither the file nor the input.
    """
    from ort_lite.cli.arrays import dtype_of

    for arg in inputs:
        expected, dtype = dtype_of(arg), feed[arg.name].dtype
        if dtype != expected and dtype.kind in "biufc" and expected.kind != "O":
            raise CommandError(
                ExitCode.USAGE,
                f"{', '.join(files)}: the array for input {arg.name} is {dtype}, and the model "
                f"expects {expected}",
                hint=f"save it with numpy as array.astype('{expected}')",
            )


def _require_sizes(
    feed: Mapping[str, Array], inputs: Sequence[NodeArg], files: Sequence[str]
) -> None:
    """Check that arrays have the sizes that the model declares.

    Raises:
        CommandError: One has others; a session would not name the file.
    """
    for arg in inputs:
        shape = feed[arg.name].shape
        # An input of unknown rank has the shape of a scalar.
        if arg.shape and not _fits(shape, arg):
            raise CommandError(
                ExitCode.USAGE,
                f"{', '.join(files)}: the array for input {arg.name} is {_size_text(shape)}, and "
                f"the model expects {_size_text(arg.shape)}",
            )


def _fits(shape: Sequence[int], arg: NodeArg) -> bool:
    return len(shape) == len(arg.shape) and all(
        not isinstance(declared, int) or declared == size
        for size, declared in zip(shape, arg.shape, strict=True)
    )


def _size_text(shape: Sequence[object]) -> str:
    """`1x3x224x224`; a free size is `?`."""
    return "x".join(str(d) if isinstance(d, int) else "?" for d in shape) or "a scalar"


def _require_images(choice: FeedChoice) -> None:
    """Check that `--shape` names inputs that images are resized for.

    Raises:
        UsageError: An array of a file has a shape of its own.
    """
    from ort_lite.cli.image_input import SUFFIXES

    if choice.shapes and not all(name.lower().endswith(SUFFIXES) for name in choice.files):
        raise click.UsageError(
            "--shape applies to images and random inputs only, not to arrays of a file"
        )


def _require_shapes(shapes: Mapping[str, tuple[int, ...]], inputs: Sequence[NodeArg]) -> None:
    """Check that `--shape` names inputs, in a shape that they can have.

    Raises:
        UsageError: No input has the name, or the model declares another shape.
    """
    declared = {arg.name: arg for arg in inputs}
    for name, shape in shapes.items():
        if name not in declared:
            raise click.UsageError(
                f"--shape {name}: the model has no input {name}; it has {', '.join(declared)}"
            )
        if not _fits(shape, declared[name]):
            text = _size_text(declared[name].shape)
            raise click.UsageError(f"--shape {name}: the model declares {text}")


@contextmanager
def explain_guesses(session: InferenceSession, choice: FeedChoice) -> Iterator[None]:
    """Add to a failed run's error that its shapes were guessed.

    Raises:
        CommandError: The run failed on guessed shapes.
    """
    from ort_lite.cli.image_input import SUFFIXES
    from ort_lite.model.shape_guess import example_shape, is_open

    try:
        yield
    except OrtLiteError as exc:
        guessed = [a for a in session.get_inputs() if is_open(a) and a.name not in choice.shapes]
        if not guessed or not all(name.lower().endswith(SUFFIXES) for name in choice.files):
            raise
        raise CommandError(
            exit_code_of(exc),
            exc.message,
            hint="dynamic sizes were guessed; name the sizes that the model expects, "
            f"for example --shape {quote_argument(example_shape(guessed[0]))}",
        ) from exc
