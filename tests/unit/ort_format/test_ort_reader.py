"""The reader of the ORT format against files that onnxruntime saved."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ort_models import mixed, save_by_onnxruntime, with_version
from small_models import mlp

from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer import MAX_DEPTH, MAX_TABLES
from ctx_formats.onnx_model import SequenceType, TensorType
from ctx_formats.ort_model_error import OrtModelError
from ctx_formats.ort_model_reader import is_ort_model, read_ort_model


@pytest.fixture(scope="module")
def saved() -> bytes:
    return save_by_onnxruntime(mixed()[0])


def test_a_file_of_onnxruntime_reads_as_the_model_it_was_made_of(saved: bytes) -> None:
    proto, _ = mixed()
    read = read_ort_model(memoryview(saved))
    model = read.model
    assert read.version == 6
    assert model.ir_version == proto.ir_version
    assert (model.producer_name, model.doc_string) == ("tests", "of the model")
    assert dict(model.metadata_props) == {"key": "value"}
    assert model.opset_imports[""] == 17
    graph = model.graph
    assert [i.name for i in graph.inputs] == ["x", "c"]
    assert graph.inputs[0].type == TensorType(1, (2, "N"))
    assert [o.name for o in graph.outputs] == [o.name for o in proto.graph.output]
    assert {n.op_type for n in graph.nodes} == {n.op_type for n in proto.graph.node}
    assert graph.value_info["list"].type == SequenceType(TensorType(1, None))
    clip = next(n for n in graph.nodes if n.op_type == "Clip")
    assert clip.inputs == ("twice", "", "top")
    branch: Any = next(n for n in graph.nodes if n.op_type == "If").attributes["then_branch"].value
    assert [n.op_type for n in branch.nodes] == ["MatMul", "Add"]
    assert graph.initializers["names"].data == (b"a\0b", "é".encode())


def test_weights_are_views_of_the_file(saved: bytes) -> None:
    data = bytearray(saved)
    weights = read_ort_model(memoryview(data)).model.graph.initializers["w"].data
    assert isinstance(weights, memoryview)
    assert weights.obj is data


def test_kernel_types_are_those_of_the_schemas(saved: bytes) -> None:
    types = read_ort_model(memoryview(saved)).model.kernel_types
    assert types is not None
    assert types.has_defaults
    for (domain, op_type), version in types.since_versions.items():
        schema = onnx.defs.get_schema(op_type, 17, domain)
        assert version == schema.since_version, op_type
    version, places = types.find("", "Clip")
    assert version == 13
    assert places == {"T": ((True, 0), (True, 1), (True, 2), (False, 0))}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_older_versions_are_read_and_say_nothing_of_kernels(version: int) -> None:
    old = with_version(save_by_onnxruntime(mlp()), str(version), resolver=False)
    read = read_ort_model(memoryview(old))
    assert read.version == version
    assert read.model.kernel_types is None


@pytest.mark.parametrize("text", ["", "0", "06", "-7", "abc", "6abc", " 6", "6 ", "+6", "4.9"])
def test_odd_version_texts_are_refused_where_onnxruntime_takes_them_for_old(text: str) -> None:
    changed = with_version(save_by_onnxruntime(mlp()), text)
    with pytest.raises(FormatError, match="ort_version"):
        read_ort_model(memoryview(changed))


def test_a_newer_version_is_refused_with_the_words_of_onnxruntime() -> None:
    changed = with_version(save_by_onnxruntime(mlp()), "7")
    with pytest.raises(OrtModelError) as error:
        read_ort_model(memoryview(changed))
    assert error.value.message == "The ORT format model version [7] is not supported in this build."


def test_bytes_without_the_identifier_are_refused() -> None:
    for data in (b"", b"ORTM", bytes(100), mlp().SerializeToString()):
        assert not is_ort_model(memoryview(data))
        with pytest.raises(FormatError):
            read_ort_model(memoryview(data), file="x.ort")


def test_every_truncation_is_refused_or_reads_the_same(saved: bytes) -> None:
    whole = repr(read_ort_model(memoryview(saved)).model.graph.nodes)
    for size in range(0, len(saved), 97):
        try:
            read = read_ort_model(memoryview(saved[:size]))
        except FormatError:
            continue
        assert repr(read.model.graph.nodes) == whole


def test_limits_are_those_of_flatbuffers_verifier() -> None:
    assert (MAX_DEPTH, MAX_TABLES) == (64, 1_000_000)
