"""ONNX's node cases through the ORT format, both ways.

`python tests/parity/ort_format_cases.py [--every N]`: each case that onnxruntime runs from ONNX is
written here and run there, and saved there and run here on the CPU EP without optimizations.
Ends with 1 if a file is not loaded, or computes other numbers than the same model in ONNX.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

import numpy as np  # noqa: E402 - the paths come first
import onnxruntime  # noqa: E402 - as above
from onnx.backend.test.case.node import collect_testcases  # noqa: E402 - as above
from ort_models import CPU, NEVER, save_by_onnxruntime  # noqa: E402 - as above

import ort_lite  # noqa: E402 - as above
from ort_lite.model import loader  # noqa: E402 - as above
from ort_lite.start.ort_conversion import encode_ort  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import onnx

RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform")
"""In the names of operators whose numbers differ from run to run."""
REFUSALS = ("element type", "type optional", "has no operator")
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
        inputs = case.data_sets[0][0]
        if len(inputs) == len(names):
            yield case.name, case.model, dict(zip(names, inputs, strict=True))


def check_case(name: str, proto: onnx.ModelProto, feed: dict[str, Any]) -> tuple[str, list[Miss]]:
    """Outcome of a case, and what is wrong with it."""
    data = proto.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = NEVER
    try:
        session = onnxruntime.InferenceSession(data, options, providers=CPU)
        expected = session.run(None, feed)
    except Exception:  # noqa: BLE001 - onnxruntime has a class for each status
        return "onnxruntime does not run it", []
    if any(word in node.op_type for node in proto.graph.node for word in RANDOM):
        return "random", []
    misses = [*_written_here(name, data, feed, expected, options)]
    misses += _saved_there(name, proto, feed, data)
    if not misses:
        return "equal", []
    refused = all(any(text in miss.what for text in REFUSALS) for miss in misses)
    return ("refused", []) if refused else ("miss", misses)


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


def _saved_there(
    name: str, proto: onnx.ModelProto, feed: dict[str, Any], data: bytes
) -> Iterator[Miss]:
    """Our numbers from their file against our numbers from ONNX."""
    options = ort_lite.SessionOptions()
    options.graph_optimization_level = ort_lite.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        with ort_lite.InferenceSession(data, options, providers=CPU) as session:
            expected = session.run(None, feed)
    except ort_lite.OrtLiteError:
        return  # not a question of the format
    try:
        saved = save_by_onnxruntime(proto)
    except Exception:  # noqa: BLE001 - onnxruntime has a class for each status
        return
    try:
        with ort_lite.InferenceSession(saved, options, providers=CPU) as session:
            outputs = session.run(None, feed)
    except ort_lite.OrtLiteError as exc:
        yield Miss(name, "saved there", str(exc))
    else:
        yield from _compare(name, "saved there", outputs, expected)


def _compare(
    name: str, way: str, outputs: Sequence[Any], expected: Sequence[Any]
) -> Iterator[Miss]:
    for index, (mine, theirs) in enumerate(zip(outputs, expected, strict=True)):
        try:
            if isinstance(theirs, list):
                np.testing.assert_equal(mine, theirs)
            elif theirs.dtype.kind == "f":
                half = theirs.dtype == np.float16  # with casts in other places
                np.testing.assert_allclose(mine, theirs, *((4e-3, 1e-3) if half else (1e-5, 1e-6)))
            else:
                np.testing.assert_array_equal(mine, theirs)
        except AssertionError as exc:
            yield Miss(name, way, f"output {index}: {' '.join(str(exc).split())[:300]}")


def main() -> int:
    """Check the cases; 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take each N-th case")
    tally: Counter[str] = Counter()
    misses: list[Miss] = []
    for name, proto, feed in load_cases(parser.parse_args().every):
        outcome, wrong = check_case(name, proto, feed)
        tally[outcome] += 1
        misses += wrong
    for miss in misses:
        sys.stdout.write(f"{miss.name}, {miss.way}: {miss.what}\n")
    sys.stdout.write(f"{dict(tally)}\n")
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())
