"""`ort-lite convert`: between ONNX and the ORT format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx.checker
from ort_models import mixed, run_in_onnxruntime, save_by_onnxruntime
from small_models import feed, mlp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any


def test_a_model_goes_to_the_ort_format_and_back(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    proto, fed = mixed()
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    done = invoke("convert", str(path), "--json")
    assert done.code == 0
    assert json.loads(done.out)["output"] == str(tmp_path / "m.ort")
    assert invoke("convert", str(tmp_path / "m.ort"), "-o", str(tmp_path / "back.onnx")).code == 0
    onnx.checker.check_model(tmp_path / "back.onnx")
    expected = run_in_onnxruntime(proto.SerializeToString(), fed)
    for name in ("m.ort", "back.onnx"):
        for mine, theirs in zip(
            run_in_onnxruntime((tmp_path / name).read_bytes(), fed), expected, strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)


def test_a_file_of_onnxruntime_becomes_onnx(invoke: Callable[..., Any], tmp_path: Path) -> None:
    saved = save_by_onnxruntime(mlp())
    (tmp_path / "m.ort").write_bytes(saved)
    assert invoke("convert", str(tmp_path / "m.ort")).code == 0
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model)
    assert [opset.domain for opset in model.opset_import] == [""]
    found, expected = (
        run_in_onnxruntime(data, feed(mlp()))[0]
        for data in ((tmp_path / "m.onnx").read_bytes(), saved)
    )
    np.testing.assert_array_equal(found, expected)


def test_a_model_that_the_format_cannot_hold_leaves_no_file(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    proto = mlp()
    proto.graph.node[0].op_type = "Unheard"
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert invoke("convert", str(tmp_path / "m.onnx")).code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_an_existing_file_is_replaced_with_force_alone(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    path, other = tmp_path / "m.onnx", tmp_path / "m.ort"
    before = mlp().SerializeToString()
    path.write_bytes(before)
    assert invoke("convert", path).code == 0
    refused = invoke("convert", other)
    assert refused.code == 2
    assert "m.onnx exists already. Hint: --force replaces it" in refused.err
    assert path.read_bytes() == before
    itself = invoke("convert", path, "-o", path, "--force")
    assert itself.code == 2
    assert "is the model itself" in itself.err
    assert invoke("convert", other, "--force").code == 0
    onnx.checker.check_model(path)
