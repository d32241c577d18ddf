"""SpaceToDepth of batches is written out for NPUs, and computes the same bits."""

from __future__ import annotations

import io
from contextlib import closing

import numpy as np
import onnx
import pytest
from npu_compiler import CoreWithCompiler, npu_providers, require_compiler
from onnx import helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort
from ctx_formats.model_writer import model_bytes
from eps.openvino.compile.convert import partition_model
from eps.openvino.compile.rewrite import rewrite_partition
from eps.openvino.sdk.binding import ov
from ort_lite.model import loader

BATCH = (2, 3, 6, 6)


def proto(
    shape: tuple[int | str, ...], block: int = 2, dtype: str = "float32", opset: int = 17
) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=block)],
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def rewritten(model: onnx.ModelProto, kind: str = "NPU") -> onnx.ModelProto:
    with closing(loader.load(model.SerializeToString(), ort.SessionOptions())) as loaded:
        graph = loader.resolve(loaded.model, {})
        made = partition_model(graph, rewrite_partition(graph, kind=kind).definition)
        return onnx.load(io.BytesIO(model_bytes(made)))


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    ("shape", "block"),
    [(BATCH, 2), ((3, 1, 4, 8), 4), ((2, 5, 9, 3), 3), (("n", 2, 4, 6), 2), ((2, 1, 1, 1), 1)],
    ids=str,
)
def test_it_moves_the_same_elements(shape: tuple[int | str, ...], block: int, dtype: str) -> None:
    model = proto(shape, block, dtype)
    written = rewritten(model)
    assert operators(written) == ["Reshape", "Transpose", "Reshape"]
    sizes = [2 if isinstance(size, str) else size for size in shape]
    x = np.arange(np.prod(sizes)).reshape(sizes).astype(dtype)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    (actual,) = ReferenceEvaluator(written).run(None, {"x": x})
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    "shape", [(1, 3, 6, 6), (2, "c", 6, 6), (2, 3, "h", 6)], ids=["image", "channels", "height"]
)
def test_images_and_unknown_sizes_stay(shape: tuple[int | str, ...]) -> None:
    assert operators(rewritten(proto(shape))) == ["SpaceToDepth"]


def test_other_devices_get_the_operator_itself() -> None:
    assert operators(rewritten(proto(BATCH), "CPU")) == ["SpaceToDepth"]
    assert operators(rewritten(proto(BATCH, opset=4))) == ["SpaceToDepth"]


def test_explain_names_the_rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    (_, note) = compiled_notes("4000")
    assert note == (
        "SpaceToDepth x1 written out as Reshape x2, Transpose x1: Intel's NPU compiler refuses "
        "batches"
    )


@pytest.mark.parametrize("platform", ["3720", "4000", "5010", "5020"])
def test_the_npu_compiler_accepts_a_batch(platform: str) -> None:
    require_compiler()
    (absent, _) = compiled_notes(platform)
    assert absent.startswith(f"compiled for NPU {platform}")


def compiled_notes(platform: str) -> tuple[str, ...]:
    """Notes of the partition that a batch becomes for an NPU; a refused node has none."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    data = proto(BATCH).SerializeToString()
    with ort.InferenceSession(data, options, providers=npu_providers(platform)) as session:
        (partition,) = session.explain().partitions
        return tuple(partition.notes)
