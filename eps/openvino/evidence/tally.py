"""Runs cases on OpenVINO alone and counts, by version of each operator, what came out."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ctx_formats.model_reader import read_model
from eps.openvino.evidence.cases import with_constants
from eps.openvino.support.offer import capability
from eps.openvino.support.table import SupportTable
from ort_lite.ep import CompileRefused, FusedNode, GraphView, OrtLiteError
from ort_lite.model.loader import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eps.openvino.evidence.cases import SuiteCase
    from eps.openvino.provider import OpenVINOExecutionProvider
    from ort_lite.ep import Graph

    Tallies = dict[tuple[str, int], "Tally"]


PROGRESS = 500
"""Cases between two words on stderr."""


@dataclass(slots=True)
class Tally:
    """The results of the cases of one operator version.

    Attributes:
        right: Runs with the stored answer.
        refused: Runs that the conditions or OpenVINO itself refused.
        disputed: Names of cases whose stored answer the installed onnx does not give either,
            while it gives OpenVINO's: mistakes in old suites, put right since.
        wrong: Names of the other cases.
    """

    right: int = 0
    refused: int = 0
    disputed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def run_cases(ep: OpenVINOExecutionProvider, release: str, cases: Iterable[SuiteCase]) -> Tallies:
    """Operator and version to tally, over the cases with one ai.onnx node.

    Each is run as it is, and with its later inputs as constants, since OpenVINO takes other ways
    then.
    """
    tallies: Tallies = {}
    everything = every_operator(release)
    for number, case in enumerate(cases, start=1):
        if number % PROGRESS == 0:
            sys.stderr.write(f"{number} cases run\n")
        node = _only_node(case.model)
        if node is None:
            continue
        tally = tallies.setdefault(node, Tally())
        for one in (case, with_constants(case)):
            if one is not None:
                _count(tally, one, ep, everything)
    return tallies


def every_operator(release: str) -> SupportTable:
    """A table that leaves every decision to the conditions: the real one is being made."""
    operators: dict[str, dict[int, bool]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            operators.setdefault(schema.name, {})[schema.since_version] = True
    return SupportTable(release, onnx.defs.onnx_opset_version(), operators)


def _only_node(content: bytes) -> tuple[str, int] | None:
    """Operator and version of the one node of a model; None if it is not such a model."""
    model = onnx.ModelProto.FromString(content)
    if len(model.graph.node) != 1 or model.graph.node[0].domain:
        return None
    opset = next(one.version for one in model.opset_import if one.domain == "")
    name = model.graph.node[0].op_type
    if opset > onnx.defs.onnx_opset_version() or not onnx.defs.has(name, opset):
        return None
    return name, onnx.defs.get_schema(name, opset).since_version


def _count(
    tally: Tally, case: SuiteCase, ep: OpenVINOExecutionProvider, everything: SupportTable
) -> None:
    graph = resolve(read_model(memoryview(case.model)), {})
    answers = _answers(ep, everything, graph, case.inputs) if len(graph.nodes) == 1 else None
    if answers is None:
        tally.refused += 1
    elif _is_close(answers, case.outputs, case):
        tally.right += 1
    elif _is_close(answers, _reference(case), case):
        tally.disputed.append(case.name)
    else:
        tally.wrong.append(case.name)


def _reference(case: SuiteCase) -> Sequence[Any]:
    """The results of the installed onnx; empty if it fails on the case."""
    model = onnx.ModelProto.FromString(case.model)
    feed = dict(zip((port.name for port in model.graph.input), case.inputs, strict=False))
    try:
        answers = ReferenceEvaluator(model).run(None, feed)
    except Exception as exc:  # noqa: BLE001 - the reference raises whatever its numpy code raises
        sys.stderr.write(f"onnx.reference fails on {case.name}: {exc}\n")
        return ()
    return list(answers)


def _answers(
    ep: OpenVINOExecutionProvider, table: SupportTable, graph: Graph, inputs: Sequence[Any]
) -> list[Any] | None:
    """OpenVINO's outputs; None if the conditions or OpenVINO itself refuse the case."""
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


def _is_close(answers: Sequence[Any], right: Sequence[Any], case: SuiteCase) -> bool:
    if len(answers) != len(right):
        return False
    for mine, expected in zip(answers, map(np.asarray, right), strict=True):
        if mine.shape != expected.shape or mine.dtype != expected.dtype:
            return False
        wide = mine.astype(np.float64), expected.astype(np.float64)
        if not np.allclose(*wide, case.rtol, case.atol, equal_nan=True):
            return False
    return True
