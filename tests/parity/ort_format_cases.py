"""ONNX's node cases through the ORT format, both ways.

`python tests/parity/ort_format_cases.py [--every N] [--models] [--provider EP] [--table FILE]`:
each case, or model of the model set, that onnxruntime runs from ONNX is written here and run there,
and saved there and run here without optimizations. A case that onnxruntime does not run is written
here and read here. Ends with 1 if a file is not loaded, or computes other numbers than the same
model in ONNX. FILE gets a line of JSON for each case: its outcome, its operators, and why it is
refused or not run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]
# onnxruntime has opset 27, with a warning.
os.environ.setdefault("ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")

import numpy as np  # noqa: E402 - the paths come first
import onnx.numpy_helper  # noqa: E402 - as above
import onnxruntime  # noqa: E402 - as above
from model_set.example_inputs import make_inputs  # noqa: E402 - as above
from model_set.manifest import load_manifest  # noqa: E402 - as above
from model_set.store import model_file  # noqa: E402 - as above
from onnx.backend.test.case.node import collect_testcases  # noqa: E402 - as above
from ort_models import CPU, NEVER, save_by_onnxruntime  # noqa: E402 - as above

import ort_lite  # noqa: E402 - as above
from ort_lite.model import loader  # noqa: E402 - as above
from ort_lite.start.ort_conversion import encode_ort  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

IR_VERSION, OPSET = 13, 26
"""The newest that onnxruntime 1.31.1 loads."""
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomUniform")
"""In the names of operators whose numbers differ from run to run."""
NOT_OF_THE_FORMAT = "not a question of the format"
REFUSALS = (
    *("element type", "type optional", "has no operator", "cannot expand it here"),
    NOT_OF_THE_FORMAT,
)
"""In messages about what the format, or onnxruntime, does not have."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A case whose file is not loaded or computes other numbers."""

    name: str
    way: str
    what: str


def load_cases(every: int = 1) -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any]]]:
    """Name, model and inputs of each `every`-th case."""
    cases = sorted(collect_testcases(None), key=lambda case: case.name)
    for case in cases[::every]:
        if case.kind != "node" or case.model is None or not case.data_sets:
            continue
        names = [info.name for info in case.model.graph.input]
        inputs = [_to_array(value) for value in case.data_sets[0][0]]
        if len(inputs) == len(names):
            yield case.name, _lower_versions(case.model), dict(zip(names, inputs, strict=True))


def load_models() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any]]]:
    """Name, model and inputs of each model of the model set that is here."""
    for name, entry in load_manifest().items():
        path = model_file(entry)
        if path.is_file():
            yield name, onnx.load(path), make_inputs(entry)


def _to_array(value: Any) -> Any:
    """A tensor as numpy array; sequences and omitted optional values as they are."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _lower_versions(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with an IR version and an operator set that onnxruntime has, if operators allow."""
    proto.ir_version = min(proto.ir_version, IR_VERSION)
    for opset in proto.opset_import:
        if opset.domain not in {"", "ai.onnx"} or opset.version <= OPSET:
            continue
        versions = {
            (onnx.defs.get_schema(op_type, max_inclusive_version=OPSET).since_version, since)
            for op_type, since in _list_since_versions(proto.graph, opset.version)
            if onnx.defs.has(op_type, max_inclusive_version=OPSET)
        }
        if all(lower == since for lower, since in versions):
            opset.version = OPSET
    return proto


def _list_since_versions(graph: onnx.GraphProto, version: int) -> Iterator[tuple[str, int]]:
    """Operator and schema version of each node of ONNX's own domain, bodies included."""
    for node in graph.node:
        if node.domain in {"", "ai.onnx"}:
            schema = onnx.defs.get_schema(node.op_type, max_inclusive_version=version)
            yield node.op_type, schema.since_version
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _list_since_versions(attribute.g, version)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case.

    `outcome` is "equal", "miss", "refused" (the format has no such type or operator), "random", or
    "not run" (onnxruntime has no kernel or no schema). `reasons` are the messages behind the last
    three, by way.
    """

    outcome: str
    misses: tuple[Miss, ...] = ()
    reasons: tuple[str, ...] = ()


def check_case(
    name: str, proto: onnx.ModelProto, feed: dict[str, Any], providers: Sequence[str] = CPU
) -> Result:
    """Outcome of a case; `providers` are ort_lite's for onnxruntime's file."""
    if any(map(_is_random, proto.graph.node)):
        return Result("random")
    data = proto.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = NEVER
    try:
        session = onnxruntime.InferenceSession(data, options, providers=CPU)
        expected = session.run(None, feed)
    except Exception as exc:  # noqa: BLE001 - onnxruntime has a class for each status
        misses = tuple(_written_and_read_here(name, data, feed, providers))
        outcome = "miss" if _split(misses)[0] else "not run"
        return Result(outcome, _split(misses)[0], (f"onnxruntime: {exc}", *_split(misses)[1]))
    wrong, refused = _split(
        (
            *_written_here(name, data, feed, expected, options),
            *_saved_there(name, proto, feed, data, providers),
        )
    )
    if wrong:
        return Result("miss", wrong, refused)
    return Result("refused" if refused else "equal", (), refused)


def _is_random(node: onnx.NodeProto) -> bool:
    """Whether a node's numbers differ from run to run; Dropout's with its input training_mode."""
    is_training = node.op_type == "Dropout" and len(node.input) > 2
    return is_training or any(word in node.op_type for word in RANDOM)


def _split(misses: Sequence[Miss]) -> tuple[tuple[Miss, ...], tuple[str, ...]]:
    """The misses, and the messages of those that are refusals by design."""
    refused = [miss for miss in misses if any(text in miss.what for text in REFUSALS)]
    return (
        tuple(miss for miss in misses if miss not in refused),
        tuple(f"{miss.way}: {miss.what}" for miss in refused),
    )


def _written_here(
    name: str, data: bytes, feed: dict[str, Any], expected: Sequence[Any], options: object
) -> Iterator[Miss]:
    try:
        pieces = encode_ort(loader.load(data, ort_lite.SessionOptions()).model)
        written = b"".join(pieces)
        session = onnxruntime.InferenceSession(written, options, providers=CPU)
        outputs = session.run(None, feed)
    except Exception as exc:  # noqa: BLE001 - onnxruntime has a class for each status
        yield Miss(name, "written here", str(exc))
    else:
        yield from _compare(name, "written here", outputs, expected)


def _written_and_read_here(
    name: str, data: bytes, feed: dict[str, Any], providers: Sequence[str]
) -> Iterator[Miss]:
    """Our numbers from our file against our numbers from ONNX."""
    expected = _run_here(data, feed, providers)
    if isinstance(expected, str):
        yield Miss(name, "ONNX here", f"{NOT_OF_THE_FORMAT}: {expected}")
        return
    try:
        written = b"".join(encode_ort(loader.load(data, ort_lite.SessionOptions()).model))
    except ort_lite.OrtLiteError as exc:
        yield Miss(name, "written and read here", str(exc))
        return
    outputs = _run_here(written, feed, providers)
    if isinstance(outputs, str):
        yield Miss(name, "written and read here", outputs)
    else:
        yield from _compare(name, "written and read here", outputs, expected)


def _saved_there(
    name: str, proto: onnx.ModelProto, feed: dict[str, Any], data: bytes, providers: Sequence[str]
) -> Iterator[Miss]:
    """Our numbers from their file against our numbers from ONNX."""
    expected = _run_here(data, feed, providers)
    if isinstance(expected, str):
        yield Miss(name, "ONNX here", f"{NOT_OF_THE_FORMAT}: {expected}")
        return
    try:
        saved = save_by_onnxruntime(proto)
    except Exception as exc:  # noqa: BLE001 - onnxruntime has a class for each status
        yield Miss(name, "saved there", f"{NOT_OF_THE_FORMAT}: onnxruntime does not save it: {exc}")
        return
    outputs = _run_here(saved, feed, providers)
    if isinstance(outputs, str):
        yield Miss(name, "saved there", outputs)
    else:
        # Other EPs add up in another order where constants are in other places.
        rtol = 1e-5 if providers[0] in CPU else 1e-4
        yield from _compare(name, "saved there", outputs, expected, rtol)


def _run_here(data: bytes, feed: dict[str, Any], providers: Sequence[str]) -> list[Any] | str:
    """Outputs without optimizations, or the message of the error."""
    options = ort_lite.SessionOptions()
    options.graph_optimization_level = ort_lite.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        with ort_lite.InferenceSession(data, options, providers=list(providers)) as session:
            return session.run(None, feed)
    except ort_lite.OrtLiteError as exc:
        return str(exc)


def _compare(
    name: str, way: str, outputs: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-5
) -> Iterator[Miss]:
    for index, (mine, theirs) in enumerate(zip(outputs, expected, strict=True)):
        try:
            if isinstance(theirs, list):
                np.testing.assert_equal(mine, theirs)
            elif theirs.dtype.kind == "f":
                half = theirs.dtype == np.float16  # with casts in other places
                np.testing.assert_allclose(mine, theirs, *((4e-3, 1e-3) if half else (rtol, 1e-6)))
            elif theirs.dtype.kind == "V":  # bfloat16 and narrower: numpy knows no NaN of them
                np.testing.assert_array_equal(*(y.astype(np.float32) for y in (mine, theirs)))
            else:
                np.testing.assert_array_equal(mine, theirs)
        except AssertionError as exc:
            yield Miss(name, way, f"output {index}: {' '.join(str(exc).split())[:300]}")


def main() -> int:
    """Check the cases; 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take each N-th case")
    parser.add_argument("--models", action="store_true", help="take the model set, not the cases")
    parser.add_argument("--provider", default=CPU[0], help="of ort_lite, for onnxruntime's files")
    parser.add_argument("--table", type=Path, help="file for a line of JSON for each case")
    arguments = parser.parse_args()
    providers = list(dict.fromkeys([arguments.provider, *CPU]))
    tally: Counter[str] = Counter()
    lines = []
    cases = load_models() if arguments.models else load_cases(arguments.every)
    for name, proto, feed in cases:
        result = check_case(name, proto, feed, providers)
        tally[result.outcome] += 1
        for miss in result.misses:
            sys.stdout.write(f"{miss.name}, {miss.way}: {miss.what}\n")
            sys.stdout.flush()
        operators = sorted({node.op_type for node in proto.graph.node})
        lines.append(json.dumps([name, result.outcome, operators, result.reasons]))
    if arguments.table:
        arguments.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{dict(tally)}\n")
    return int(tally["miss"] > 0)


if __name__ == "__main__":
    sys.exit(main())
