"""ONNX's own node cases, many in one model, so that a device compiles one program for all."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx.backend.test.case.test_case import TestCase

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class Merged:
    """Independent nodes of one opset, with what goes in and must come out.

    Attributes:
        tolerances: Relative and absolute, for each output.
    """

    model: onnx.ModelProto
    feeds: dict[str, Array] = field(default_factory=dict)
    expected: dict[str, Array] = field(default_factory=dict)
    tolerances: dict[str, tuple[float, float]] = field(default_factory=dict)


def node_cases(operators: Sequence[str]) -> list[TestCase]:
    """The suite's cases of single nodes, those with data and tensors only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows on purpose
        from onnx.backend.test.case.node import collect_testcases  # noqa: PLC0415 - warns

        found = {c.name: c for c in collect_testcases(None)}
    wanted = set(operators)
    return [
        c
        for c in found.values()
        if c.model is not None
        and len(c.model.graph.node) == 1
        and c.model.graph.node[0].op_type in wanted
    ]


def merge(
    cases: Sequence[TestCase], fixed: Mapping[str, Sequence[int]], refused: Sequence[str] = ()
) -> list[Merged]:
    """One model for each opset.

    Args:
        cases: Of single nodes.
        fixed: For each operator the positions of inputs that are made initializers.
        refused: Names of cases to leave out.
    """
    models: dict[tuple[tuple[str, int], ...], Merged] = {}
    for case in cases:
        if case.name not in refused:
            assert case.model is not None
            imports = sorted((x.domain, x.version) for x in case.model.opset_import)
            if tuple(imports) not in models:
                graph = helper.make_graph([], "merged", [], [])
                opsets = [helper.make_opsetid(*x) for x in imports]
                model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
                models[tuple(imports)] = Merged(model)
            _add(models[tuple(imports)], case, fixed.get(case.model.graph.node[0].op_type, ()))
    return list(models.values())


def _add(merged: Merged, case: TestCase, fixed: Sequence[int]) -> None:
    assert case.model is not None
    assert case.data_sets is not None
    graph, source = merged.model.graph, case.model.graph
    names = {name: f"{case.name}/{name}" for node in source.node for name in node.input}
    names |= {name: f"{case.name}/{name}" for node in source.node for name in node.output}
    names[""] = ""
    inputs, outputs = case.data_sets[0]
    node = graph.node.add()
    node.CopyFrom(source.node[0])
    node.name = case.name
    node.input[:] = [names[n] for n in node.input]
    node.output[:] = [names[n] for n in node.output]
    constants = {source.node[0].input[i] for i in fixed if i < len(source.node[0].input)}
    for info, value in zip(source.input, inputs, strict=True):
        array = _array(value)
        if info.name in constants:
            graph.initializer.append(numpy_helper.from_array(array, names[info.name]))
        else:
            added = graph.input.add()
            added.CopyFrom(info)
            added.name = names[info.name]
            merged.feeds[added.name] = array
    for info, value in zip(source.output, outputs, strict=True):
        added = graph.output.add()
        added.CopyFrom(info)
        added.name = names[info.name]
        merged.expected[added.name] = _array(value)
        merged.tolerances[added.name] = (case.rtol, case.atol)


def _array(value: object) -> Array:
    return (
        numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    )


def check(merged: Merged, found: Mapping[str, Array]) -> None:
    """Every output is of the type and shape, and within the tolerance, that the case names."""
    for name, right in merged.expected.items():
        mine, (rtol, atol) = found[name], merged.tolerances[name]
        assert (mine.dtype, mine.shape) == (right.dtype, right.shape), name
        np.testing.assert_allclose(mine, right, rtol=rtol, atol=atol, err_msg=name)
