"""ONNX's one-node cases with inputs that have no elements, against onnxruntime.

    cd tests && python -m parity.empty_inputs OpenVINOExecutionProvider

Dimensions of the inputs are made free and then 0, in three ways. Where onnxruntime gives an answer
the execution provider must give one of the same shapes, types and values. Writes JSON to stdout:
counts, and the cases that differ with what is different.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from parity.ieee.measure import onnxruntime_session

import ort_lite
from eps.openvino.evidence.cases import suite_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Feed = Mapping[str, np.ndarray[Any, Any]]

WAYS = ("batch", "first", "last")
"""Axis 0 of all inputs that have the first one's size there; of the first alone; its last axis."""
ABORTING = ("test_gru", "test_lstm", "test_rnn", "test_simple_rnn")
"""Cases for which onnxruntime 1.31.1 ends the process where a sequence has no steps."""
RTOL, ATOL = 1e-3, 1e-5


def emptied(feed: Feed, way: str) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs with some axis cut to 0."""
    found = dict(feed)
    name = next((n for n, x in feed.items() if x.ndim), "")
    if not name:
        return found
    size = feed[name].shape[0]
    if way == "last":
        found[name] = feed[name][..., :0]
    for other, array in feed.items():
        if way != "last" and array.ndim and (other == name or way == "batch"):
            found[other] = array[: 0 if array.shape[0] == size else None]
    return found


def with_free_shapes(model: onnx.ModelProto) -> bytes:
    """The model with every dimension of inputs free, and of outputs unknown."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    for info in made.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{info.name}_{axis}"
    for info in made.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    del made.graph.value_info[:]
    return bytes(made.SerializeToString())


def cases() -> Iterator[tuple[str, bytes, Mapping[str, Feed]]]:
    """Name, model, and the emptied inputs by way."""
    for case in suite_cases():
        model = onnx.ModelProto.FromString(case.model)
        if len(model.graph.node) != 1 or not all(
            isinstance(x, np.ndarray | np.generic) for x in case.inputs
        ):
            continue
        names = [info.name for info in model.graph.input]
        feed = {n: np.asarray(x) for n, x in zip(names, case.inputs, strict=False)}
        ways = {way: emptied(feed, way) for way in WAYS}
        shapes = {way: str([x.shape for x in made.values()]) for way, made in ways.items()}
        distinct = {shape: way for way, shape in reversed(shapes.items())}
        used = {way: ways[way] for way in WAYS if distinct[shapes[way]] == way}
        yield case.name, with_free_shapes(model), used


def difference(found: Sequence[Any], right: Sequence[Any]) -> str:
    """What is different; "" where nothing is."""
    for one, other in zip(found, right, strict=True):
        if isinstance(other, list) or isinstance(one, list):
            if type(one) is not type(other) or len(one) != len(other):
                return "sequence"
            continue
        mine, theirs = np.asarray(one), np.asarray(other)
        if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return f"{mine.dtype}{list(mine.shape)} for {theirs.dtype}{list(theirs.shape)}"
        if theirs.dtype.kind == "f" and not np.allclose(
            mine, theirs, rtol=RTOL, atol=ATOL, equal_nan=True
        ):
            return "value"
        if theirs.dtype.kind in "biuO" and not np.array_equal(mine, theirs):
            return "value"
    return ""


def measure(provider: str, part: str = "") -> tuple[Counter[str], dict[str, str]]:
    """Counts, and "case way" to what is different."""
    counts: Counter[str] = Counter()
    differences: dict[str, str] = {}
    config = ort_lite.SessionOptions()
    config.log_severity_level = 4
    config.add_session_config_entry("session.placement", "all")
    for name, model, feeds in cases():
        if part not in name or name.startswith(ABORTING):
            continue
        theirs = onnxruntime_session(model)
        if theirs is None:
            counts["not loaded by onnxruntime"] += 1
            continue
        for way, feed in feeds.items():
            try:
                right = theirs.run(None, feed)
            except Exception:  # noqa: BLE001 - the binding raises plain exceptions of many classes
                counts["onnxruntime fails"] += 1
                continue
            counts["compared"] += 1
            try:
                with ort_lite.InferenceSession(model, config, providers=[provider]) as ours:
                    ours.disable_fallback()
                    worst = difference(ours.run(None, feed), right)
            except ort_lite.OrtLiteError as exc:
                worst = f"error: {exc}"[:200]
            if worst:
                differences[f"{name} {way}"] = worst
    return counts, differences


if __name__ == "__main__":
    COUNTS, DIFFERENCES = measure(*sys.argv[1:])
    sys.stdout.write(json.dumps({"counts": COUNTS, "differences": DIFFERENCES}, indent=1) + "\n")
