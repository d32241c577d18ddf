"""Reads, writes and generates arrays: .npy and .npz files, random inputs."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ctx_formats.atomic_write import create_sibling_file, publish
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.next_steps import similar_file
from ort_lite.execution.sample_inputs import find_dtype, make_random_array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ort_lite.model.info import NodeArg

    Array = np.ndarray[Any, np.dtype[Any]]


def random_feed(
    inputs: Sequence[NodeArg], shapes: Mapping[str, tuple[int, ...]], seed: int
) -> dict[str, Array]:
    """Random array for each input; a dynamic dimension is 1.

    Raises:
        CommandError: An input is not a tensor, or a shape names an unknown input.
    """
    unknown = sorted(set(shapes) - {arg.name for arg in inputs})
    if unknown:
        known = ", ".join(arg.name for arg in inputs)
        raise CommandError(
            ExitCode.USAGE, f"the model has no input {', '.join(unknown)}; it has {known}"
        )
    random = np.random.default_rng(seed)
    return {arg.name: _random_array(arg, shapes.get(arg.name), random) for arg in inputs}


def _random_array(
    arg: NodeArg, shape: tuple[int, ...] | None, random: np.random.Generator
) -> Array:
    dtype = dtype_of(arg)
    if shape is None:
        shape = tuple(dim if isinstance(dim, int) else 1 for dim in arg.shape)
    return make_random_array(dtype, shape, random)


def dtype_of(arg: NodeArg) -> np.dtype[Any]:
    """The element type of an input.

    Raises:
        CommandError: The input is not a tensor.
    """
    dtype = find_dtype(arg.type)
    if dtype is None:
        raise CommandError(
            ExitCode.USAGE, f"input {arg.name} is a {arg.type}; only tensors are supported"
        )
    return dtype


def load_feed(path: Path, inputs: Sequence[NodeArg]) -> dict[str, Array]:
    """The arrays of a .npz file by input name.

    Raises:
        CommandError: The file is missing, is not a .npz file, or contains Python objects.
    """
    arrays = load_arrays(path)
    # numpy writes types that it does not know, such as bfloat16, as raw bytes of their size.
    dtypes = {arg.name: dtype_of(arg) for arg in inputs if arg.name in arrays}
    return {
        name: array.view(dtypes[name]) if name in dtypes and array.dtype.kind == "V" else array
        for name, array in arrays.items()
    }


_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError),
    *(RuntimeError, MemoryError, struct.error, OverflowError, TypeError),
    *(SyntaxError, tokenize.TokenError),
)
"""Exceptions of zipfile and numpy for damaged files, encrypted ones (RuntimeError), and headers
that announce more data than exist."""


def load_array(path: Path, arg: NodeArg) -> Array:
    """The array of a .npy file, for one input.

    Raises:
        CommandError: The file is missing, is not a .npy file, or contains Python objects.
    """
    require_regular(path, ".npy")
    try:
        with path.open("rb") as file:
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError as exc:
        raise CommandError(ExitCode.USAGE, f"{path} does not exist") from exc
    except _BROKEN as exc:
        raise CommandError(
            ExitCode.USAGE, f"{path} is not a .npy file with a plain array: {exc}"
        ) from exc
    return array.view(dtype_of(arg)) if array.dtype.kind == "V" else array


def load_arrays(path: Path) -> dict[str, Array]:
    """Every array of a .npz file.

    Raises:
        CommandError: The file is missing, is not a .npz file, or contains Python objects.
    """
    require_regular(path, ".npz")
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name.removesuffix(".npy"): _member(archive, name) for name in archive.namelist()
            }
    except FileNotFoundError as exc:
        raise CommandError(ExitCode.USAGE, f"{path} does not exist") from exc
    except _BROKEN as exc:
        raise CommandError(
            ExitCode.USAGE, f"{path} is not a .npz file with plain arrays: {exc}"
        ) from exc


def require_regular(path: Path, kind: str) -> None:
    """Refuse a FIFO or a device, which may never end.

    Raises:
        CommandError: The path does not exist, or is not a regular file.
    """
    if not path.exists():
        raise CommandError(
            ExitCode.USAGE,
            f"{path} does not exist; expected a {kind} file",
            hint=similar_file(path),
        )
    if not path.is_file():
        raise CommandError(ExitCode.USAGE, f"{path} is not a regular file; expected a {kind} file")


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    kind = archive.getinfo(name).compress_type
    if kind not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others swell 7,000 times
        raise ValueError(f"'{name[:80]}' is compressed by method {kind}; numpy writes 0 and 8")
    with archive.open(name) as file:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def save_arrays(path: Path, arrays: Mapping[str, object]) -> None:
    """Write arrays as .npz, atomically.

    The elements of a list get their position after the name. numpy's own savez
    cannot write an array called "file".

    Raises:
        CommandError: The file cannot be written, or a value is not an array.
    """
    flat = {name: array for key, value in arrays.items() for name, array in _flat(key, value)}
    try:
        with create_sibling_file(path) as (out, temporary):
            _write_archive(out, flat)
        publish(temporary, path, replace=True)
    except OSError as exc:
        raise CommandError(ExitCode.USAGE, f"cannot write {path}: {exc.strerror or exc}") from exc


def _write_archive(out: BinaryIO, arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _flat(name: str, value: object) -> list[tuple[str, Array]]:
    if isinstance(value, list):
        return [pair for i, item in enumerate(value) for pair in _flat(f"{name}.{i}", item)]
    if isinstance(value, np.ndarray):
        return [(name, value.astype(str) if value.dtype == object else value)]
    raise CommandError(ExitCode.USAGE, f"output {name} is a {type(value).__name__}, not an array")
