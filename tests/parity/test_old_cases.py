"""The command for old node cases, and the operators that only those have."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from parity.check_old_cases import as_json, check
from unit.cpu_contrib.peer import f32

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

CPU = ["CPUExecutionProvider"]


def wheel(path: Path, cases: dict[str, float]) -> Path:
    """Cases of -x for x = 2, each with the answer that it claims."""
    node = helper.make_node("Neg", ["x"], ["y"])
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in ("x", "y")]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with zipfile.ZipFile(path, "w") as archive:
        for name, answer in cases.items():
            folder = f"onnx/backend/test/data/node/{name}"
            archive.writestr(f"{folder}/model.onnx", model.SerializeToString())
            for kind, value in (("input", 2.0), ("output", answer)):
                tensor = numpy_helper.from_array(np.array([value], np.float32))
                data = tensor.SerializeToString()
                archive.writestr(f"{folder}/test_data_set_0/{kind}_0.pb", data)
    return path


def test_cases_are_run_once_and_misses_explained(tmp_path: Path) -> None:
    old = wheel(tmp_path / "old.whl", {"test_neg": 5.0, "test_same": -2.0, "test_odd": 7.0})
    new = wheel(tmp_path / "new.whl", {"test_neg": -2.0, "test_same": -2.0})
    count, misses = check([("1.3.0", old), ("1.4.1", new)])
    assert count == 4
    assert [(miss.case.release, miss.case.name) for miss in misses] == [
        ("1.3.0", "test_neg"),
        ("1.3.0", "test_odd"),
    ]
    assert misses[0].reason == "onnx mended the case; as 1.4.1 has it, it passes"
    assert misses[1].reason == ""
    assert not any(miss.is_ours for miss in misses)  # no engine gives 7
    assert as_json(count, misses)["passed"] == 2


EXPERIMENTAL: list[tuple[str, dict[str, Any]]] = [
    ("Affine", {"alpha": 2.0, "beta": -1.0}),
    ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}),
    ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}),
    ("Scale", {"scale": 3.0}),
    ("Crop", {"border": [1, 2, 0, 1]}),
    ("Crop", {"border": [1, 2, 0, 1], "scale": [2, 1]}),
    ("ImageScaler", {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}),
    ("ThresholdedRelu", {"alpha": 0.5}),
    ("MeanVarianceNormalization", {}),
    ("MeanVarianceNormalization", {"across_channels": 1}),
]


@pytest.mark.parametrize(("op", "attributes"), EXPERIMENTAL)
def test_an_operator_that_was_on_trial_gives_onnxruntimes_numbers(
    op: str, attributes: dict[str, Any]
) -> None:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3, 4, 4]) for n in "xy"]
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=3)
    data, feed = made.SerializeToString(), {"x": f32(2, 3, 4, 4)}
    theirs = onnxruntime.InferenceSession(data, providers=CPU).run(None, feed)
    mine = ort.InferenceSession(data, providers=CPU).run(None, feed)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5, atol=1e-5)
