"""The inputs of a run: out of files, and random where no file gives one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.cli.arrays import dtype_of, load_array, load_feed, random_feed, require_regular
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.image_input import SUFFIXES, load_image
from ort_lite.cli.output import print_note
from ort_lite.cli.shape_guess import guessed_shape, is_open

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.cli.pixel_form import PixelForm
    from ort_lite.model.info import NodeArg

    Array = np.ndarray[Any, np.dtype[Any]]

KINDS = ".npz, .npy, .json or a picture"
MAX_JSON = 256 << 20
"""Bytes of a .json file that are read; more is for .npy."""


def feed_of_files(
    files: Sequence[str],
    inputs: Sequence[NodeArg],
    metadata: Mapping[str, str],
    form: PixelForm,
) -> dict[str, Array]:
    """Arrays by input name out of files.

    Args:
        files: `FILE`, or `NAME=FILE` for one input. A .npz file, and a .json file with an
            object, have names of their own; another goes to the first input without one.
        inputs: The model's.
        metadata: The model's.
        form: Of the pixels of pictures.

    Raises:
        CommandError: A file cannot be read, or fits no input.
    """
    found: dict[str, Array] = {}
    for text in files:
        name, path = _named(text, inputs)
        require_regular(path, KINDS)
        if path.suffix == ".npz" and not name:
            found |= load_feed(path, inputs)
            continue
        if path.suffix == ".json":
            content = _json(path)
            if isinstance(content, dict) and not name:
                found |= {
                    key: _array(value, _arg(key, inputs), path) for key, value in content.items()
                }
                continue
            arg = _arg(name, inputs) if name else _next(inputs, found, text)
            found[arg.name] = _array(content, arg, path)
            continue
        arg = _arg(name, inputs) if name else _next(inputs, found, text)
        if path.suffix == ".npy":
            found[arg.name] = load_array(path, arg)
        elif path.suffix.lower() in SUFFIXES:
            found[arg.name], told = load_image(path, arg, metadata, form)
            print_note(f"note: {told}")
        else:
            raise CommandError(ExitCode.USAGE, f"{path}: expected {KINDS} as an input")
    return found


def guessed_feed(
    inputs: Sequence[NodeArg],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
    metadata: Mapping[str, str],
) -> dict[str, Array]:
    """One seeded array per input, in the shape given or one that is guessed, which is told.

    Raises:
        CommandError: An input that is no tensor, or a shape for an input that is not there.
    """
    guessed = {
        arg.name: guessed_shape(arg, metadata)
        for arg in inputs
        if is_open(arg) and arg.name not in shapes
    }
    feed = random_feed(inputs, {**guessed, **shapes}, seed)
    if guessed:
        text = " ".join(f"--shape {n}={'x'.join(map(str, dims))}" for n, dims in guessed.items())
        print_note(f"note: the model leaves sizes open; random inputs are as with {text}")
    return feed


def _named(text: str, inputs: Sequence[NodeArg]) -> tuple[str, Path]:
    """`NAME=FILE` taken apart; a name that no input has is part of the file's."""
    for arg in inputs:
        if text.startswith(f"{arg.name}="):
            return arg.name, Path(text[len(arg.name) + 1 :])
    return "", Path(text)


def _arg(name: str, inputs: Sequence[NodeArg]) -> NodeArg:
    for arg in inputs:
        if arg.name == name:
            return arg
    known = ", ".join(arg.name for arg in inputs)
    raise CommandError(ExitCode.USAGE, f"the model has no input {name}; it has {known}")


def _next(inputs: Sequence[NodeArg], found: Mapping[str, Array], text: str) -> NodeArg:
    """The first input that no file has given yet."""
    for arg in inputs:
        if arg.name not in found:
            return arg
    known = ", ".join(arg.name for arg in inputs)
    raise CommandError(
        ExitCode.USAGE, f"{text} is one file too many; the model's inputs are {known}"
    )


def _json(path: Path) -> object:
    try:
        if path.stat().st_size > MAX_JSON:
            raise CommandError(
                ExitCode.USAGE, f"{path} has over {MAX_JSON >> 20} MB; give arrays as .npy"
            )
        return json.loads(path.read_bytes())
    except FileNotFoundError as exc:
        raise CommandError(ExitCode.USAGE, f"{path} is not there") from exc
    except (OSError, ValueError, RecursionError) as exc:
        raise CommandError(ExitCode.USAGE, f"{path} is not JSON that can be read: {exc}") from exc


def _array(value: object, arg: NodeArg, path: Path) -> Array:
    """Nested lists as an array of the input's type."""
    try:
        array: Array = np.asarray(value)
        if array.dtype.kind not in "biufU":
            raise ValueError("lists of different lengths, or something that is no number")  # noqa: TRY301 - one text for what numpy and we refuse
        dtype = dtype_of(arg)
        return array.astype(object if dtype.kind == "O" else dtype)
    except (ValueError, TypeError, OverflowError) as exc:
        raise CommandError(
            ExitCode.USAGE, f"{path}: the value for input {arg.name}, a {arg.type}: {exc}"
        ) from exc
