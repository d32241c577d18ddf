"""The requirements of the EPContext design, S1 to S21, a test each.

Numbers as in the design's checklist: S1 to S4 the node, S5 to S10 options, S11 to S13
generation, S14 to S18 inference, S19 to S21 sharing.
"""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import onnx
import openvino
import pytest
from context_models import OPENVINO, compile_context, foreign_container, set_attribute
from onnx import external_data_helper, helper
from small_models import feed, mlp, model, sandwich, tied

import ort_lite as ort
from benchmarks.harness.engine_programs import FLOAT32
from ctx_formats.container_reader import read_container
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.model_reader import read_model
from ort_lite.ep.interface import compare_identities

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from onnx import ModelProto

ENABLE = "ep.context_enable"
PATH = "ep.context_file_path"
EMBED = "ep.context_embed_mode"
ATTRIBUTES = {
    "main_context", "ep_cache_context", "embed_mode", "ep_sdk_version", "onnx_model_filename",
    "hardware_architecture", "partition_name", "source", "notes", "max_size",
}  # fmt: skip


def session(source: Path | bytes, entries: Mapping[str, str] | None = None) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in (entries or {}).items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(source, options, providers=[OPENVINO])


def saved(folder: Path, proto: ModelProto, name: str = "m.onnx") -> Path:
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


def generate(folder: Path, proto: ModelProto, **entries: str) -> list[EpContextNode]:
    named = {key.replace("__", "."): value for key, value in entries.items()}
    session(saved(folder, proto), {ENABLE: "1", **named}).close()
    return nodes(folder / "m_ctx.onnx")


def nodes(path: Path) -> list[EpContextNode]:
    graph = read_model(memoryview(path.read_bytes())).graph
    return [EpContextNode.from_node(n) for n in graph.nodes if n.op_type == "EPContext"]


def answer(proto: ModelProto) -> np.ndarray:
    with session(proto.SerializeToString()) as plain:
        return plain.run(None, feed(proto))[0]


def runs(source: Path | bytes, proto: ModelProto, **entries: str) -> None:
    named = {key.replace("__", "."): value for key, value in entries.items()}
    with session(source, {**named, "session.disable_model_compile": "1"}) as loaded:
        np.testing.assert_array_equal(loaded.run(None, feed(proto))[0], answer(proto))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_s01_the_node_has_the_ten_attributes_in_the_domain_of_microsoft(tmp_path: Path) -> None:
    generate(tmp_path, mlp())
    proto = onnx.load(tmp_path / "m_ctx.onnx")
    (node,) = proto.graph.node
    assert (node.domain, node.op_type) == ("com.microsoft", "EPContext")
    assert {attribute.name for attribute in node.attribute} == ATTRIBUTES
    assert {(o.domain, o.version) for o in proto.opset_import} >= {("com.microsoft", 1)}
    assert {field.name for field in fields(EpContextNode)} >= ATTRIBUTES
    (bare,) = [replace(n, inputs=(), notes="") for n in nodes(tmp_path / "m_ctx.onnx")]
    assert EpContextNode.from_node(bare.to_node()) == bare, "no input is allowed, one output is"


def test_s02_a_node_with_main_context_0_has_its_graph_in_another_s_context(tmp_path: Path) -> None:
    first, second = generate(tmp_path, sandwich(), ep__context_embed_mode="1")
    assert (first.main_context, second.main_context) == (True, False)
    assert not second.ep_cache_context
    container = read_container(memoryview(bytes(first.ep_cache_context)))
    assert set(container.entries) == {first.partition_name, second.partition_name}
    runs(tmp_path / "m_ctx.onnx", sandwich())


def test_s03_embed_mode_is_1_where_it_is_not_given_and_0_means_a_relative_path(
    tmp_path: Path,
) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=True)
    made.edit(set_attribute("embed_mode", None))
    runs(made.path, mlp())
    (tmp_path / "sub").mkdir()
    external = compile_context(tmp_path / "sub", mlp(), feed(mlp()), embed=False)
    assert external.payload is not None
    external.payload.rename(tmp_path / "sub" / "p.bin")
    external.path.rename(tmp_path / "other.onnx")
    moved = replace(external, path=tmp_path / "other.onnx")
    moved.edit(set_attribute("ep_cache_context", "sub/p.bin"))
    runs(moved.path, mlp())


def test_s04_the_source_is_the_name_of_the_execution_provider(tmp_path: Path) -> None:
    (node,) = generate(tmp_path, mlp())
    assert node.source == OPENVINO


def test_s05_a_context_is_written_if_it_is_asked_for(tmp_path: Path) -> None:
    for value in ("0", "", "true"):
        session(saved(tmp_path, mlp()), {ENABLE: value}).close()
        assert names(tmp_path) == {"m.onnx"}
    generate(tmp_path, mlp())
    assert "m_ctx.onnx" in names(tmp_path)


def test_s06_the_path_is_derived_or_given_and_needed_for_a_model_from_memory(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "v1.0"
    folder.mkdir()
    session(saved(folder, mlp(), "noext"), {ENABLE: "1"}).close()
    assert names(folder) == {"noext", "noext_ctx.onnx", f"noext_{OPENVINO}.bin"}, (
        "a dot in a folder's name is none of the file's"
    )
    runs(folder / "noext_ctx.onnx", mlp())
    given = tmp_path / "given.onnx"
    session(mlp().SerializeToString(), {ENABLE: "1", PATH: str(given)}).close()
    runs(given, mlp())
    with pytest.raises(ort.Fail, match="without a valid location"):
        session(mlp().SerializeToString(), {ENABLE: "1"})
    with pytest.raises(ort.InvalidArgument, match="should not point to a folder"):
        session(mlp().SerializeToString(), {ENABLE: "1", PATH: str(tmp_path)})


def test_s07_payloads_are_beside_the_model_unless_embedding_is_asked_for(tmp_path: Path) -> None:
    (node,) = generate(tmp_path, mlp())
    assert not node.embed_mode
    assert names(tmp_path) == {"m.onnx", "m_ctx.onnx", f"m_{OPENVINO}.bin"}


def test_s08_the_prefix_is_in_node_name_partition_name_and_index(tmp_path: Path) -> None:
    (node,) = generate(tmp_path, mlp(), ep__context_node_name_prefix="left_")
    assert node.name.startswith("left_")
    assert node.partition_name.startswith("left_")
    data = memoryview((tmp_path / f"m_{OPENVINO}.bin").read_bytes())
    assert list(read_container(data).entries) == [node.partition_name]
    runs(tmp_path / "m_ctx.onnx", mlp())


def test_s09_external_weights_are_looked_for_in_the_folder_that_is_named(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    data = outside(weights, mlp())
    key = "session.model_external_initializers_file_folder_path"
    with session(data, {key: str(weights)}) as loaded:
        np.testing.assert_array_equal(loaded.run(None, feed(mlp()))[0], answer(mlp()))


def outside(folder: Path, proto: ModelProto) -> bytes:
    """The model's bytes, its weights in `folder`/w.data."""
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    external_data_helper.convert_model_to_external_data(copy, location="w.data", size_threshold=0)
    onnx.save(copy, folder / "model.onnx")
    return (folder / "model.onnx").read_bytes()


def test_s10_initializers_are_all_inside_or_all_in_the_named_file(tmp_path: Path) -> None:
    proto = sandwich()
    for name in ("", "w.bin"):
        folder = tmp_path / f"out{name}"
        folder.mkdir()
        data = outside(folder, proto)
        entries = {
            ENABLE: "1",
            PATH: str(folder / "c.onnx"),
            "session.model_external_initializers_file_folder_path": str(folder),
            "ep.context_model_external_initializers_file_name": name,
        }
        session(data, entries).close()
        (folder / "w.data").unlink()
        kept = onnx.load(folder / "c.onnx", load_external_data=False).graph.initializer
        places = {tensor.data_location for tensor in kept}
        assert places == {onnx.TensorProto.EXTERNAL if name else onnx.TensorProto.DEFAULT}
        runs(folder / "c.onnx", proto)


def test_s11_the_core_writes_the_node_and_what_the_ep_exported(tmp_path: Path) -> None:
    """The EP gives bytes and sees no file: OpenVINO alone takes the payload back."""
    (node,) = generate(tmp_path, mlp())
    container = read_container(memoryview((tmp_path / f"m_{OPENVINO}.bin").read_bytes()))
    payload = bytes(container.read_payload(node.partition_name))
    compiled = openvino.Core().import_model(payload, "CPU", FLOAT32)
    found = compiled(feed(mlp()))[0]
    np.testing.assert_array_equal(found, answer(mlp()))


def test_s12_several_partitions_have_one_file_named_after_model_and_ep(tmp_path: Path) -> None:
    first, second = generate(tmp_path, sandwich())
    assert first.payload_path == second.payload_path == f"m_{OPENVINO}.bin"
    data = memoryview((tmp_path / f"m_{OPENVINO}.bin").read_bytes())
    assert set(read_container(data).entries) == {first.partition_name, second.partition_name}
    runs(tmp_path / "m_ctx.onnx", sandwich())


def test_s13_primary_nodes_are_those_with_main_context_1(tmp_path: Path) -> None:
    """The design's text says embed_mode=1 there, and means this: a primary may be external."""
    first, second = generate(tmp_path, sandwich())
    assert first.main_context
    assert second.main_context
    made = tmp_path / "m_ctx.onnx"
    proto = onnx.load(made)
    secondary = [n for n in proto.graph.node if n.op_type == "EPContext"][1]
    set_attribute("main_context", 0)(secondary)
    set_attribute("ep_cache_context", None)(secondary)
    set_attribute("notes", None)(secondary)
    made.write_bytes(proto.SerializeToString())
    runs(made, sandwich())


def test_s14_an_ep_takes_the_nodes_of_its_source_alone(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    made.edit(set_attribute("source", "QNNExecutionProvider"))
    with pytest.raises(ort.NotImplemented, match="generated by 'QNNExecutionProvider'"):
        made.load()
    with session(mlp().SerializeToString()) as plain:
        assert [p.origin for p in plain.explain().partitions] == ["compiled"]


def test_s15_embed_mode_0_is_the_separate_file(tmp_path: Path) -> None:
    (node,) = generate(tmp_path, mlp())
    assert not node.embed_mode
    assert (tmp_path / node.payload_path).is_file()


def test_s16_paths_are_relative_to_the_model_or_to_the_path_given_for_one_from_memory(
    tmp_path: Path,
) -> None:
    generate(tmp_path, mlp())
    data = (tmp_path / "m_ctx.onnx").read_bytes()
    runs(tmp_path / "m_ctx.onnx", mlp())
    runs(data, mlp(), ep__context_file_path=str(tmp_path / "whatever.onnx"))
    with pytest.raises(ort.InvalidGraph, match=r"ep\.context_file_path"):
        session(data)


def test_s17_several_primary_nodes_are_loaded_together(tmp_path: Path) -> None:
    """Two models compiled apart, glued together by hand."""
    exp = model([helper.make_node("Exp", ["x"], ["y"])], [("x", [2, 3])], [("y", [2, 3])])
    glued = []
    for name, proto in (("a", mlp()), ("b", exp)):
        (tmp_path / name).mkdir()
        generate(tmp_path / name, proto, ep__context_node_name_prefix=f"{name}_")
        (node,) = onnx.load(tmp_path / name / "m_ctx.onnx").graph.node
        shutil.copy(tmp_path / name / f"m_{OPENVINO}.bin", tmp_path / f"{name}.bin")
        set_attribute("ep_cache_context", f"{name}.bin")(node)
        glued.append(node)
    glued[0].output[0] = glued[1].input[0] = "middle"
    proto = model(glued, [("x", [2, 4])], [("y", [2, 3])], contrib=True)
    middle = helper.make_tensor_value_info("middle", onnx.TensorProto.FLOAT, [2, 3])
    proto.graph.value_info.append(middle)
    with session(saved(tmp_path, proto, "glued.onnx")) as loaded:
        (found,) = loaded.run(None, feed(mlp()))
    np.testing.assert_allclose(found, np.exp(answer(mlp())), rtol=1e-6)


def test_s18_another_driver_another_sdk_and_any_failure_are_invalid_graph(tmp_path: Path) -> None:
    here = HardwareIdentity(driver_version="32.0", sdk_version="2026.4.1")
    for field, reason in (
        ("driver_version", Reason.DRIVER_VERSION),
        ("sdk_version", Reason.SDK_VERSION),
    ):
        assert compare_identities(replace(here, **{field: "1.0"}), here).reason is reason
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    whole = made.path.read_bytes()
    failures: dict[Reason, Callable[[], None]] = {
        Reason.SDK_VERSION: lambda: made.edit(set_attribute("ep_sdk_version", "1.0")),
        Reason.MISSING_PAYLOAD: lambda: made.edit(set_attribute("partition_name", "x")),
        Reason.VENDOR_REJECTED: lambda: foreign_container(made, lambda b: b[:300] + bytes(9_000)),
    }
    for reason, bring_about in failures.items():
        made.path.write_bytes(whole)
        bring_about()
        with pytest.raises(ort.InvalidGraph) as found:
            made.load()
        assert found.value.code is ort.StatusCode.INVALID_GRAPH
        assert found.value.reason is reason


def generate_group(folder: Path, *protos: ModelProto) -> list[Path]:
    """Context models of one session group; m0.onnx is the first."""
    folder.mkdir()
    made = []
    with ort.SharedContexts() as group:
        for i, proto in enumerate(protos):
            options = ort.SessionOptions()
            options.add_session_config_entry(ENABLE, "1")
            group.join(options)
            path = saved(folder, proto, f"m{i}.onnx")
            ort.InferenceSession(path, options, providers=[OPENVINO]).close()
            made.append(folder / f"m{i}_ctx.onnx")
    return made


def test_s19_weights_that_several_models_have_are_stored_once(tmp_path: Path) -> None:
    generate_group(tmp_path / "one", tied(1.0, 512))
    generate_group(tmp_path / "two", tied(1.0, 512), tied(-1.0, 512))
    one, two = ((tmp_path / n / f"m0_{OPENVINO}.bin").stat().st_size for n in ("one", "two"))
    assert two <= 1.2 * one


def test_s20_n_models_of_a_group_give_n_plus_one_files(tmp_path: Path) -> None:
    first, second = generate_group(tmp_path / "group", tied(1.0), tied(-1.0))
    new = names(tmp_path / "group") - {"m0.onnx", "m1.onnx"}
    assert new == {first.name, second.name, f"m0_{OPENVINO}.bin"}
    assert {n.payload_path for path in (first, second) for n in nodes(path)} == {
        f"m0_{OPENVINO}.bin"
    }
    runs(first, tied(1.0))
    runs(second, tied(-1.0))


def test_s21_sessions_of_a_group_read_the_file_once(tmp_path: Path) -> None:
    """The second finds its graph with the group, and takes it out."""
    protos = (tied(1.0), tied(-1.0))
    made = generate_group(tmp_path / "group", *protos)
    with ort.SharedContexts() as group:
        for path, proto in zip(made, protos, strict=True):
            options = ort.SessionOptions()
            group.join(options)
            with ort.InferenceSession(path, options, providers=[OPENVINO]) as loaded:
                np.testing.assert_array_equal(loaded.run(None, feed(proto))[0], answer(proto))
        assert group.waiting_contexts == ()
        assert group.payload_files.reads == 1
