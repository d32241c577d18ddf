"""Makes and checks the table of operators that OpenVINO computes right.

`python -m eps.openvino.evidence` runs every single-node case of ONNX's test suite that the
conditions let through on OpenVINO alone, and compares. `--write` stores the table beside this
file, `--check` (the default) ends with 1 if the stored one claims what this run does not show.
To take in a new OpenVINO: run it with --check; for each wrong operator write a condition, or add
it to `WRONG`; then --write.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.backend.test.loader
import openvino as ov

from ctx_formats.model_reader import read_model
from eps.openvino.identity import sdk_version
from eps.openvino.options import parse_options
from eps.openvino.provider import OpenVINOExecutionProvider
from eps.openvino.support import TABLE, SupportTable, capability, load_table
from ort_lite.execution_provider import CompileRefused, FusedNode, GraphView
from ort_lite.model_loader import resolve
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ort_lite.graph import Graph

SEEN_IN_MODELS = ("Cast", "CastLike")
"""Operators whose cases the suite makes with types that OpenVINO's binding cannot carry; real
models hold them to onnxruntime's numbers."""


@dataclass(slots=True)
class Tally:
    """What the cases of one operator gave."""

    right: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


_Case = tuple[str, bytes, "Sequence[Any]", "Sequence[Any]", tuple[float, float]]
"""Name, model, inputs, right outputs, and the suite's rtol and atol."""


class _AllOperators(frozenset[str]):
    """Every operator is in it: the table is what is being made."""

    def __contains__(self, _: object) -> bool:
        return True


def run_suite() -> dict[str, Tally]:
    """Operator to tally, over the suite's single-node cases."""
    ep = OpenVINOExecutionProvider(parse_options({}))
    everything = SupportTable(ov.__version__, _AllOperators())
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for name, model, inputs, outputs, tolerance in _single_node_cases():
        graph = resolve(read_model(memoryview(model)), {})
        if len(graph.nodes) != 1:
            continue
        tally = tallies[graph.nodes[0].op_type]
        found = _answers(ep, everything, graph, inputs)
        if found is None:
            tally.refused += 1
        elif _agree(found, outputs, tolerance):
            tally.right += 1
        else:
            tally.wrong.append(name)
    ep.release()
    return dict(tallies)


def _single_node_cases() -> Iterator[_Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows on purpose
        cases = onnx.backend.test.loader.load_model_tests(kind="node")
    for case in cases:
        model = case.model
        if model is None or len(model.graph.node) != 1 or model.graph.node[0].domain:
            continue
        for inputs, outputs in case.data_sets or ():
            tolerance = (case.rtol, case.atol)
            yield case.name, model.SerializeToString(), inputs, outputs, tolerance
            fixed = _with_constants(model, inputs)
            if fixed is not None:
                yield f"{case.name} with constants", fixed, inputs[:1], outputs, tolerance


def _with_constants(model: onnx.ModelProto, inputs: Sequence[Any]) -> bytes | None:
    """The case with every input but the first an initializer, as models have axes and scales."""
    rest = list(zip(model.graph.input[1:], inputs[1:], strict=False))
    if not rest or not all(isinstance(x, np.ndarray | np.generic) for _, x in rest):
        return None
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.input[1:]
    made.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(x), info.name) for info, x in rest
    )
    return bytes(made.SerializeToString())


def _answers(
    ep: OpenVINOExecutionProvider, table: SupportTable, graph: Graph, inputs: Sequence[Any]
) -> list[Any] | None:
    """OpenVINO's outputs; None where the conditions or OpenVINO itself refuse the case."""
    view = GraphView(graph, frozenset({0}))
    if not capability(view, table).supported:
        return None
    if not all(isinstance(x, np.ndarray | np.generic) for x in inputs):
        return None
    part = graph.extract([0], "case")
    names = [info.name for info in graph.inputs]
    feed = {n: np.asarray(x) for n, x in zip(names, inputs, strict=False)}
    try:
        (compiled,) = ep.compile([FusedNode(name="case", graph=part)])
        return list(compiled.run([feed[info.name] for info in part.inputs]))
    except (CompileRefused, OrtLiteError):
        return None


def _agree(found: Sequence[Any], right: Sequence[Any], tolerance: tuple[float, float]) -> bool:
    rtol, atol = tolerance
    for mine, expected in zip(found, map(np.asarray, right), strict=True):
        if mine.shape != expected.shape or mine.dtype != expected.dtype:
            return False
        if not np.allclose(
            mine.astype(np.float64), expected.astype(np.float64), rtol, atol, equal_nan=True
        ):
            return False
    return True


def table_of(tallies: dict[str, Tally], contrib: Sequence[str]) -> dict[str, Any]:
    """The table: operators with a right case and no wrong one, and what the suite lacks."""
    right = {
        name: {"right": tally.right, "refused": tally.refused}
        for name, tally in tallies.items()
        if tally.right and not tally.wrong
    }
    for name in (*SEEN_IN_MODELS, *contrib):
        right.setdefault(name, {"right": 0, "refused": 0})
    return {
        "openvino": sdk_version(ov.__version__),
        "onnx": onnx.__version__,
        "operators": dict(sorted(right.items())),
    }


def main(arguments: Sequence[str]) -> int:
    """Run the suite; write the table or compare with it."""
    parser = argparse.ArgumentParser(prog="python -m eps.openvino.evidence", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the table")
    parser.add_argument(
        "--check", action="store_true", help="compare with the stored one (default)"
    )
    chosen = parser.parse_args(arguments)
    stored = load_table().operators
    tallies = run_suite()
    table = table_of(tallies, [name for name in stored if ":" in name])
    for name, tally in sorted(tallies.items()):
        for case in tally.wrong:
            sys.stdout.write(f"wrong    {name}: {case}\n")
    lost = sorted(stored - table["operators"].keys())
    gained = sorted(table["operators"].keys() - stored)
    for name in lost:
        sys.stdout.write(f"lost     {name}: claimed, and not shown by this run\n")
    for name in gained:
        sys.stdout.write(f"gained   {name}: shown, and not claimed\n")
    right = sum(tally.right for tally in tallies.values())
    sys.stdout.write(f"OpenVINO {table['openvino']}: {right} cases right\n")
    if chosen.write:
        path = Path(str(files("eps.openvino").joinpath(TABLE)))
        path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        return 0
    return 1 if lost or any(tally.wrong for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
