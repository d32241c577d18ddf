"""What benchmarks run on: the models of the set and one of a single node, with inputs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from model_set.example_inputs import make_inputs
from model_set.manifest import load_manifest
from model_set.store import ensure_models

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE_NODE = "one_node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line of a benchmark asks for.

    Attributes:
        models: Names, in the order to run them.
        json: Where to write all measurements, or None.
    """

    models: tuple[str, ...]
    turns: int
    json: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A model and the file of its inputs."""

    name: str
    path: Path
    feed: Path


def ask(
    description: str | None, turns: int, extra: Sequence[str] = (), default: Sequence[str] = ()
) -> Asked:
    """Read the command line.

    Args:
        description: Of the benchmark.
        turns: Without `--turns`.
        extra: Models in addition to those of the set.
        default: Those meant where none is named; all, if it is empty.
    """
    known = (*load_manifest(), *extra)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "models", nargs="*", help=f"of {', '.join(known)}; default: {', '.join(default) or 'all'}"
    )
    parser.add_argument("--turns", type=int, default=turns, help="how often each is timed")
    parser.add_argument("--json", type=Path, help="write all measurements to this file, too")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.models if name not in known]
    if unknown:
        parser.error(f"unknown model {', '.join(unknown)}; known: {', '.join(known)}")
    if arguments.turns < 1:
        parser.error(f"--turns {arguments.turns}, expected 1 or more")
    return Asked(
        models=tuple(arguments.models or default or known),
        turns=arguments.turns,
        json=arguments.json,
    )


def make_sample(name: str, folder: Path) -> Sample:
    """The model by that name, fetched if need be, and its inputs, written to `folder`."""
    feed = folder / f"{name}.npz"
    if name == ONE_NODE:
        path = folder / f"{name}.onnx"
        path.write_bytes(_one_node())
        np.savez(feed, X=np.arange(6, dtype=np.float32).reshape(3, 2))
    else:
        path = ensure_models([name])[name]
        np.savez(feed, **make_inputs(load_manifest()[name]))  # type: ignore[arg-type] # numpy 2.4's stub takes allow_pickle for all of **kwds
    return Sample(name=name, path=path, feed=feed)


def _one_node() -> bytes:
    """Y = X * W, [3, 2]: nothing to compute, so that a run is all overhead."""
    import onnx  # noqa: PLC0415 - slow to import, and for this alone
    from onnx import helper  # noqa: PLC0415 - see above

    def value(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 2])

    weight = helper.make_tensor("W", onnx.TensorProto.FLOAT, [3, 2], [1, 2, 3, 4, 5, 6])
    node = helper.make_node("Mul", ["X", "W"], ["Y"])
    graph = helper.make_graph([node], ONE_NODE, [value("X")], [value("Y")], [weight])
    opset = helper.make_opsetid("", 17)
    model: onnx.ModelProto = helper.make_model(graph, ir_version=8, opset_imports=[opset])
    return bytes(model.SerializeToString())
