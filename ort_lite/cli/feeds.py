"""The inputs of a run: from files, or random."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.cli.arrays import dtype_of, load_array, load_feed, random_feed, require_regular
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.image_input import SUFFIXES, load_image
from ort_lite.cli.next_steps import look_at, name_of_input
from ort_lite.cli.output import print_note
from ort_lite.context.quote_argument import quote_argument
from ort_lite.model.shape_guess import guessed_shape, is_open, sizes_of_symbols

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.cli.pixel_form import PixelForm
    from ort_lite.model.info import NodeArg

    Array = np.ndarray[Any, np.dtype[Any]]

KINDS = ".npz, .npy, .json or an image"
MAX_JSON = 256 << 20
"""Largest .json file, in bytes; larger inputs belong in .npy files."""


def feed_of_files(
    files: Sequence[str],
    inputs: Sequence[NodeArg],
    shapes: Mapping[str, tuple[int, ...]],
    form: PixelForm,
) -> dict[str, Array]:
    """Read arrays by input name from files.

    Args:
        files: `FILE`, or `NAME=FILE` for one input. A .npz file, and a .json file with an
            object, have names of their own; another goes to the first input without one.
        inputs: The model's.
        shapes: Of inputs that get an image, by name; without dynamic sizes.
        form: Of the pixels of pictures.

    Raises:
        CommandError: A file cannot be read, or fits no input.
    """
    feed: dict[str, Array] = {}
    for text in files:
        name, path = _split_name(text, inputs)
        require_regular(path, KINDS)
        if path.suffix == ".npz" and not name:
            feed |= load_feed(path, inputs)
            continue
        if path.suffix == ".json":
            content = _read_json(path)
            if isinstance(content, dict) and not name:
                feed |= {
                    key: _to_array(value, _input_of(key, inputs, f"{path}: "), path)
                    for key, value in content.items()
                }
                continue
            arg = _input_of(name, inputs) if name else _next_input(inputs, feed, text)
            feed[arg.name] = _to_array(content, arg, path)
            continue
        arg = _input_of(name, inputs) if name else _next_input(inputs, feed, text)
        if path.suffix == ".npy":
            feed[arg.name] = load_array(path, arg)
        elif path.suffix.lower() in SUFFIXES:
            feed[arg.name], note = load_image(path, arg, shapes[arg.name], form)
            print_note(f"note: {note}")
        else:
            raise _wrong_kind(path)
    return feed


def guessed_feed(
    inputs: Sequence[NodeArg],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
    metadata: Mapping[str, str],
) -> dict[str, Array]:
    """Random array for each input, in the given or a guessed shape; guesses are reported.

    Raises:
        CommandError: An input is not a tensor, or a shape names an unknown input.
    """
    known = sizes_of_symbols(inputs, shapes)
    guessed = {
        arg.name: guessed_shape(arg, metadata, known)
        for arg in inputs
        if is_open(arg) and arg.name not in shapes
    }
    feed = random_feed(inputs, {**guessed, **shapes}, seed)
    if guessed:
        sizes = (f"{name}={'x'.join(map(str, dims))}" for name, dims in guessed.items())
        text = " ".join(f"--shape {quote_argument(size)}" for size in sizes)
        print_note(f"note: the model has dynamic sizes; random inputs use {text}")
    return feed


def _wrong_kind(path: Path) -> CommandError:
    quoted = quote_argument(str(path))
    kind = look_at(path)
    name = name_of_input(path, kind)
    if name:
        message = f"{path} is {kind} with another extension; expected {KINDS} as an input"
        return CommandError(ExitCode.USAGE, message, hint=f"rename it to {name}")
    return CommandError(
        ExitCode.USAGE,
        f"{path}: expected {KINDS} as an input",
        hint=f"--compare cpu --reference {quoted} compares the outputs with those of that model"
        if path.suffix in (".onnx", ".ort")
        else "save an array with numpy.save, or several by name with numpy.savez",
    )


def _split_name(text: str, inputs: Sequence[NodeArg]) -> tuple[str, Path]:
    """Split `NAME=FILE`; a NAME that no input has belongs to the file's name.

    Raises:
        CommandError: FILE exists alone, and no input is called NAME.
    """
    for arg in inputs:
        if text.startswith(f"{arg.name}="):
            return arg.name, Path(text[len(arg.name) + 1 :])
    name, sign, file = text.partition("=")
    if sign and Path(file).is_file() and not Path(text).exists():
        _input_of(name, inputs)
    return "", Path(text)


def _input_of(name: str, inputs: Sequence[NodeArg], source: str = "") -> NodeArg:
    """The input of that name; `source` begins the error of an unknown one."""
    for arg in inputs:
        if arg.name == name:
            return arg
    names = ", ".join(arg.name for arg in inputs)
    raise CommandError(ExitCode.USAGE, f"{source}the model has no input {name}; it has {names}")


def _next_input(inputs: Sequence[NodeArg], feed: Mapping[str, Array], text: str) -> NodeArg:
    """The first input without an array."""
    for arg in inputs:
        if arg.name not in feed:
            return arg
    names = ", ".join(arg.name for arg in inputs)
    raise CommandError(
        ExitCode.USAGE, f"{text}: no input is left for it; the model's inputs are {names}"
    )


def _read_json(path: Path) -> object:
    try:
        if path.stat().st_size > MAX_JSON:
            raise CommandError(
                ExitCode.USAGE,
                f"{path} is larger than {MAX_JSON >> 20} MB; use .npy for large arrays",
            )
        return json.loads(path.read_bytes())
    except FileNotFoundError as exc:
        raise CommandError(ExitCode.USAGE, f"{path} does not exist") from exc
    except (OSError, ValueError, RecursionError) as exc:
        raise CommandError(ExitCode.USAGE, f"cannot read {path} as JSON: {exc}") from exc


def _to_array(value: object, arg: NodeArg, path: Path) -> Array:
    """Nested lists as an array of the input's type."""
    try:
        array: Array = np.asarray(value)
        if array.dtype.kind not in "biufU":
            raise ValueError("lists of different lengths, or values that are not numbers")  # noqa: TRY301 - one text for what numpy and we refuse
        dtype = dtype_of(arg)
        return array.astype(object if dtype.kind == "O" else dtype)
    except (ValueError, TypeError, OverflowError) as exc:
        raise CommandError(
            ExitCode.USAGE, f"{path}: the value for input {arg.name}, a {arg.type}: {exc}"
        ) from exc
