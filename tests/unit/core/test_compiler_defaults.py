"""ModelCompiler without execution providers, held against onnxruntime's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_models import feed, mlp, model

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

CPU = ["CPUExecutionProvider"]


def doubled_casts() -> onnx.ModelProto:
    """A cast that another one undoes, among others, which ORT_ENABLE_BASIC removes."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["a"], ["b"], to=TensorProto.DOUBLE),
        helper.make_node("Abs", ["b"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
    ]
    return model(nodes, [("x", [2, 3])], [("y", [2, 3])])


def compiled(module: Any, proto: onnx.ModelProto, path: Path, level: str) -> list[str]:
    """Operators of what is written for the CPU EP."""
    compiler = module.ModelCompiler(
        module.SessionOptions(),
        proto.SerializeToString(),
        graph_optimization_level=getattr(module.GraphOptimizationLevel, level),
    )
    compiler.compile_to_file(str(path))
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.mark.parametrize(
    ("make", "level"),
    [
        (doubled_casts, "ORT_DISABLE_ALL"),
        (doubled_casts, "ORT_ENABLE_BASIC"),
        (mlp, "ORT_DISABLE_ALL"),
    ],
    ids=["casts", "casts at BASIC", "mlp"],
)
def test_what_is_written_for_the_cpu_has_onnxruntimes_nodes(
    make: Any, level: str, tmp_path: Path
) -> None:
    proto = make()
    theirs = compiled(onnxruntime, proto, tmp_path / "theirs.onnx", level)
    ours = compiled(ort, proto, tmp_path / "ours.onnx", level)
    assert ours == theirs
    values = feed(proto)
    results = [
        module.InferenceSession(str(tmp_path / name), providers=CPU).run(None, values)[0]
        for module in (onnxruntime, ort)
        for name in ("ours.onnx", "theirs.onnx")
    ]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-6)


@pytest.mark.parametrize("module", [onnxruntime, ort], ids=["onnxruntime", "ort_lite"])
def test_without_providers_no_node_is_compiled(module: Any) -> None:
    compiler = module.ModelCompiler(
        module.SessionOptions(),
        mlp().SerializeToString(),
        flags=module.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED,
    )
    with pytest.raises(Exception, match="Unable to compile any nodes"):
        compiler.compile_to_bytes()


def test_a_policy_for_devices_still_chooses_who_compiles() -> None:
    options = ort.SessionOptions()
    policy = ort.OrtExecutionProviderDevicePolicy.PREFER_CPU
    options.set_provider_selection_policy(policy)
    compiler = ort.ModelCompiler(
        options, mlp().SerializeToString(), embed_compiled_data_into_model=True
    )
    data = compiler.compile_to_bytes()
    assert [node.op_type for node in onnx.load_from_string(data).graph.node] == ["EPContext"]
