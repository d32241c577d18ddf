"""`ort-lite compile --shapes`: shapes whose programs a context model contains."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from typing import TYPE_CHECKING

import click

from ort_lite.cli.device_choice import OPENCL
from ort_lite.cli.session_choice import key_value
from ort_lite.ep.input_shapes import RESHAPE_INPUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ort_lite.cli.session_choice import SessionChoice

    ShapeSet = Mapping[str, tuple[int, ...]]

EXAMPLE = "images=1x3x320x320,1x3x640x640"


def with_shapes(choice: SessionChoice, model: Path, texts: Sequence[str]) -> SessionChoice:
    """`choice`, with OpenCL's `reshape_input` for the shapes that `texts` list.

    Raises:
        UsageError: A text is not of the form of `EXAMPLE`, no input has its name or rank, or no
            execution provider of the session compiles for single shapes.
    """
    if not texts:
        return choice
    sets = parse_shape_sets(texts)
    for one in sets:
        _require_inputs(model, choice, one)
    providers = []
    for name, options in choice.providers or ():
        if name == OPENCL:
            if RESHAPE_INPUT in options:
                raise click.UsageError(f"--shapes and -O {RESHAPE_INPUT} cannot be combined")
            providers.append((name, {**options, RESHAPE_INPUT: _reshape_text(sets)}))
        else:
            providers.append((name, dict(options)))
    if not any(name == OPENCL for name, _ in providers):
        raise click.UsageError(
            "--shapes needs -e opencl: other execution providers compile once for all shapes; an "
            f"NPU's are chosen by -O {RESHAPE_INPUT}"
        )
    return dataclasses.replace(choice, providers=tuple(providers))


def parse_shape_sets(texts: Sequence[str]) -> list[ShapeSet]:
    """Shapes by input name, a set for each position in the lists; one shape stands for all sets.

    Raises:
        UsageError: A text is not of the form of `EXAMPLE`, or lists differ in length.
    """
    shapes: dict[str, list[tuple[int, ...]]] = {}
    for text in texts:
        name, value = key_value(text, "--shapes", EXAMPLE)
        listed = [part.split("x") for part in value.split(",")]
        if not all(dim.isascii() and dim.isdigit() and int(dim) for dims in listed for dim in dims):
            raise click.UsageError(f"--shapes {text}: expected {EXAMPLE}")
        if name in shapes:
            raise click.UsageError(f"--shapes lists {name} twice; separate its shapes by commas")
        shapes[name] = [tuple(map(int, dims)) for dims in listed]
    most = max(map(len, shapes.values()))
    for name, listed_shapes in shapes.items():
        if len(listed_shapes) not in (1, most):
            raise click.UsageError(
                f"--shapes has {len(listed_shapes)} shapes for {name} and {most} for another "
                "input; list one shape, or as many"
            )
    return [
        {name: each[min(index, len(each) - 1)] for name, each in shapes.items()}
        for index in range(most)
    ]


def _reshape_text(sets: Sequence[ShapeSet]) -> str:
    """The sets as the provider option has them."""
    return ";".join(
        ",".join(f"{name}[{','.join(map(str, shape))}]" for name, shape in one.items())
        for one in sets
    )


def _require_inputs(model: Path, choice: SessionChoice, shapes: ShapeSet) -> None:
    from ctx_formats.onnx_model import TensorType
    from ort_lite.model.loader import load

    with closing(load(model, choice.session_options())) as loaded:
        graph = loaded.model.graph
        inputs = {i.name: i.type for i in graph.inputs if i.name not in graph.initializers}
    for name, shape in shapes.items():
        if name not in inputs:
            raise click.UsageError(f"--shapes {name}: the model has {', '.join(inputs)}")
        declared = inputs[name]
        dims = declared.shape if isinstance(declared, TensorType) else None
        if dims is not None and len(dims) != len(shape):
            raise click.UsageError(
                f"--shapes {name}: {len(shape)} dimensions, the model has {len(dims)}"
            )
        fixed = [dim if isinstance(dim, int) else None for dim in dims or shape]
        if any(size not in (None, chosen) for size, chosen in zip(fixed, shape, strict=True)):
            text = "x".join("?" if size is None else str(size) for size in fixed)
            raise click.UsageError(f"--shapes {name}: the model declares {text}")
