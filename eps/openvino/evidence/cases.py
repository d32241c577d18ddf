"""Single-operator cases with right answers: the installed ONNX's own, and folders of older ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.backend.test.loader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Values = Sequence[Any]

RTOL, ATOL = 1e-3, 1e-7
"""Tolerance of ONNX's own runner for cases that set none."""


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """One run of a model with one node.

    Attributes:
        name: As the suite calls it.
        model: Serialized ModelProto.
        inputs: As many as the graph has inputs or fewer; arrays, or what is not a tensor.
        outputs: The right answers.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
    """

    name: str
    model: bytes
    inputs: Values
    outputs: Values
    rtol: float = RTOL
    atol: float = ATOL


def suite_cases() -> Iterator[SuiteCase]:
    """The node cases that the installed onnx makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows on purpose
        made = onnx.backend.test.loader.load_model_tests(kind="node")
    for case in made:
        if case.model is None:
            continue
        model = case.model.SerializeToString()
        for inputs, outputs in case.data_sets or ():
            yield SuiteCase(case.name, model, inputs, outputs, case.rtol, case.atol)


def stored_cases(folder: Path) -> Iterator[SuiteCase]:
    """Cases as ONNX's wheels up to 1.18 held them: `*/model.onnx`, `*/test_data_set_*/*.pb`."""
    for path in sorted(folder.rglob("model.onnx")):
        content = path.read_bytes()
        if not _has_only_numbers(onnx.ModelProto.FromString(content)):
            continue
        for data in sorted(path.parent.glob("test_data_set_*")):
            name = str(path.parent.relative_to(folder))
            yield SuiteCase(name, content, _tensors(data, "input"), _tensors(data, "output"))


def with_constants(case: SuiteCase) -> SuiteCase | None:
    """The case with every input but the first an initializer, as models have axes and scales."""
    model = onnx.ModelProto.FromString(case.model)
    rest = list(zip(model.graph.input[1:], case.inputs[1:], strict=False))
    if not rest or not all(isinstance(x, np.ndarray | np.generic) for _, x in rest):
        return None
    del model.graph.input[1:]
    model.ir_version = max(model.ir_version, 4)  # before, an initializer had to be an input too
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(x), info.name) for info, x in rest
    )
    name = f"{case.name} with constants"
    return replace(case, name=name, model=model.SerializeToString(), inputs=case.inputs[:1])


def _has_only_numbers(model: onnx.ModelProto) -> bool:
    types = [port.type for port in (*model.graph.input, *model.graph.output)]
    return all(
        one.WhichOneof("value") == "tensor_type"
        and one.tensor_type.elem_type != onnx.TensorProto.STRING
        for one in types
    )


def _tensors(data: Path, kind: str) -> list[Any]:
    """The stored inputs or outputs of one run."""
    tensors: list[Any] = []
    while (path := data / f"{kind}_{len(tensors)}.pb").is_file():
        tensors.append(onnx.numpy_helper.to_array(onnx.load_tensor(path)))
    return tensors
