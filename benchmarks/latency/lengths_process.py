"""One process of lengths.py: ENGINE MODEL SIZES, a file of JSON.

That has a list of objects, each from a free dimension's name to its size. For each of them the
model runs twice with the same inputs.

Prints a JSON object: `started` and `at`, the `perf_counter` at the beginning and at the first
answer; in `steps` the medians of the seconds of `new`, the first run of each size but the first
two, and of `again`, the second one; `peak_rss`. A process whose engine cannot run the model prints
`absent`, the reason.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from benchmarks.harness.engine_programs import PROGRAMS
from benchmarks.harness.process_result import send_result

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST = 2
"""Runs whose times do not count: they also allocate, and read weights."""


def main(started: float, engine: str, model: str, sizes: str) -> int:
    """Run the model with each size, say how long that took."""
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    inputs = read_inputs(Path(model))
    drawn: list[dict[str, int]] = json.loads(Path(sizes).read_text(encoding="utf-8"))
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {"new": [], "again": []}
    at = 0.0
    try:
        run = PROGRAMS[engine]("")(model)
        for lengths in drawn:
            feed = {name: draw(name, info, lengths, rng) for name, info in inputs.items()}
            for taken in seconds.values():
                began = perf_counter()
                run(feed)
                taken.append(perf_counter() - began)
                at = at or perf_counter()
    # The engines' exceptions have no common base; the reason is in the table.
    except Exception as exc:  # noqa: BLE001 - see above
        first = (str(exc).strip() or type(exc).__name__).splitlines()[0]
        os.write(answers, json.dumps({"absent": first}).encode() + b"\n")
        return 0
    steps = {name: median(taken[FIRST:]) for name, taken in seconds.items()}
    send_result(answers, started=started, at=at, steps=steps)
    return 0


def read_inputs(path: Path) -> dict[str, onnx.TypeProto.Tensor]:
    """Types of a model's inputs that are not initializers."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    return {one.name: one.type.tensor_type for one in graph.input if one.name not in constants}


def draw(
    name: str, info: onnx.TypeProto.Tensor, sizes: Mapping[str, int], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """An input: ones in masks, small numbers for other integers; free sizes not given are 1."""
    shape = [one.dim_value or sizes.get(one.dim_param, 1) for one in info.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.elem_type)
    if "mask" in name or dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 2 if "type" in name else 90, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)
