"""Every session option about contexts, with ONNX Runtime's defaults and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from context_models import OPENVINO
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from small_models import FLOAT, branching, feed, mlp, model, sandwich

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from onnx import ModelProto

CPU = "CPUExecutionProvider"


def options(entries: Mapping[str, str]) -> ort.SessionOptions:
    made = ort.SessionOptions()
    for key, value in entries.items():
        made.add_session_config_entry(key, value)
    return made


def write(source: Path | bytes, **entries: str) -> list[np.ndarray[Any, Any]]:
    """Write a context model through a session; what that session computes for `feed`."""
    given = {"ep.context_enable": "1"}
    given |= {f"ep.context_{key}": value for key, value in entries.items()}
    with ort.InferenceSession(source, options(given), providers=[OPENVINO]) as session:
        shapes = {
            i.name: [d if isinstance(d, int) else 2 for d in i.shape] for i in session.get_inputs()
        }
        random = np.random.default_rng(1)
        return session.run(
            None, {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
        )


def load(source: Path | bytes, proto: ModelProto, **entries: str) -> np.ndarray[Any, Any]:
    used = options({key.replace("__", "."): value for key, value in entries.items()})
    with ort.InferenceSession(source, used, providers=[OPENVINO]) as session:
        return session.run(None, feed(proto))[0]


def context_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """EPContext nodes of a graph and of every body in it."""
    found = []
    for node in graph.node:
        found += [node] if node.op_type == "EPContext" else []
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += context_nodes(attribute.g)
    return found


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def external(folder: Path, proto: ModelProto) -> Path:
    """`proto` with all its weights in `folder`/w.data."""
    folder.mkdir(exist_ok=True)
    onnx.save_model(
        proto, folder / "m.onnx", save_as_external_data=True, size_threshold=0, location="w.data"
    )
    return folder / "m.onnx"


def test_a_model_of_bytes_with_its_weights_in_a_folder_goes_both_ways(tmp_path: Path) -> None:
    proto = sandwich()
    data = external(tmp_path / "in", proto).read_bytes()
    out = tmp_path / "out"
    out.mkdir()
    used = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(out / "c.onnx"),
        "session.model_external_initializers_file_folder_path": str(tmp_path / "in"),
    }
    with ort.InferenceSession(data, options(used), providers=[OPENVINO]) as session:
        expected = session.run(None, feed(proto))[0]
    (tmp_path / "in" / "w.data").unlink()
    place = {"ep__context_file_path": str(out / "c.onnx")}
    np.testing.assert_array_equal(load((out / "c.onnx").read_bytes(), proto, **place), expected)
    np.testing.assert_array_equal(load(out / "c.onnx", proto), expected)


def test_the_folder_of_weights_is_not_where_payloads_are_looked_for(tmp_path: Path) -> None:
    """microsoft/onnxruntime#32054: there, the option moves the payloads too."""
    proto = sandwich()
    made = external(tmp_path / "m", proto)
    elsewhere = tmp_path / "weights"
    elsewhere.mkdir()
    (made.parent / "w.data").rename(elsewhere / "w.data")
    folder = {"session.model_external_initializers_file_folder_path": str(elsewhere)}
    used = options({"ep.context_enable": "1", **folder})
    with ort.InferenceSession(made, used, providers=[OPENVINO]) as session:
        expected = session.run(None, feed(proto))[0]
    assert sorted(p.name for p in made.parent.glob("*.bin")) == [f"m_{OPENVINO}.bin"]
    keys = {key.replace(".", "__"): value for key, value in folder.items()}
    found = load(made.with_name("m_ctx.onnx"), proto, **keys)
    np.testing.assert_array_equal(found, expected)


def test_the_path_option_wins_over_the_place_of_the_file(tmp_path: Path) -> None:
    proto = mlp()
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    write(tmp_path / "m.onnx")
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / f"m_{OPENVINO}.bin").rename(other / f"m_{OPENVINO}.bin")
    with pytest.raises(ort.InvalidGraph, match="does not exist"):
        load(tmp_path / "m_ctx.onnx", proto)
    load(tmp_path / "m_ctx.onnx", proto, ep__context_file_path=str(other / "any.onnx"))


def test_a_compiled_model_is_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    write(tmp_path / "m.onnx")
    before = sorted(p.name for p in tmp_path.iterdir())
    write(tmp_path / "m_ctx.onnx", file_path=str(tmp_path / "again.onnx"))
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_the_cpu_ep_cannot_be_asked_for_and_forbidden() -> None:
    used = options({"session.disable_cpu_ep_fallback": "1"})
    with pytest.raises(
        ort.InvalidArgument,
        match=r"Conflicting session configuration: explicitly added the CPU EP to the session, but "
        r"also disabled fallback to the CPU EP via session configuration options.",
    ):
        ort.InferenceSession(mlp().SerializeToString(), used, providers=[OPENVINO, CPU])


def test_a_context_with_a_node_left_to_the_cpu_ep_is_refused_where_that_is_forbidden(
    tmp_path: Path,
) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    write(tmp_path / "m.onnx")
    with pytest.raises(ort.Fail, match="fallback to CPU EP has been explicitly disabled"):
        load(tmp_path / "m_ctx.onnx", sandwich(), session__disable_cpu_ep_fallback="1")


@pytest.mark.parametrize("entry", ["ep.context_enable", "optimized"])
def test_nothing_is_written_where_the_cpu_ep_is_forbidden_and_needed(
    tmp_path: Path, entry: str
) -> None:
    """ONNX Runtime writes the files, and fails then."""
    source = tmp_path / "m.onnx"
    source.write_bytes(sandwich().SerializeToString())
    used = options({"session.disable_cpu_ep_fallback": "1"})
    if entry == "optimized":
        used.optimized_model_filepath = str(tmp_path / "o.onnx")
    else:
        used.add_session_config_entry(entry, "1")
    with pytest.raises(ort.Fail, match="fallback to CPU EP has been explicitly disabled"):
        ort.InferenceSession(source, used, providers=[OPENVINO])
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("embed", ["0", "1"])
def test_the_prefix_is_in_every_name(tmp_path: Path, embed: str) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    expected = write(tmp_path / "m.onnx", node_name_prefix="a_", embed_mode=embed)[0]
    nodes = context_nodes(onnx.load(tmp_path / "m_ctx.onnx").graph)
    for node in nodes:
        assert node.name.startswith(f"a_{OPENVINO}_")
        assert attributes(node)["partition_name"].decode() == node.name
    np.testing.assert_array_equal(load(tmp_path / "m_ctx.onnx", sandwich()), expected)


def scanned() -> ModelProto:
    """A Scan that multiplies its state by a weight and adds each row."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["s_in", "bw"], ["sm"], name="body_matmul"),
            helper.make_node("Add", ["sm", "row"], ["s_out"], name="body_add"),
            helper.make_node("Tanh", ["s_out"], ["out_row"], name="body_tanh"),
        ],
        "body",
        [helper.make_tensor_value_info(n, FLOAT, [1, 3]) for n in ("s_in", "row")],
        [helper.make_tensor_value_info(n, FLOAT, [1, 3]) for n in ("s_out", "out_row")],
        [numpy_helper.from_array(np.eye(3, dtype=np.float32) / 2, "bw")],
    )
    nodes = [helper.make_node("Scan", ["s", "x"], ["final", "y"], body=body, num_scan_inputs=1)]
    return model(nodes, [("s", [1, 3]), ("x", [4, 1, 3])], [("final", [1, 3]), ("y", [4, 1, 3])])


def looped() -> ModelProto:
    """A Loop of three trips, which OpenVINO does not take whole for its ReduceMax of rank 3."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["v_in", "bw"], ["vm"], name="body_matmul"),
            helper.make_node("ReduceMax", ["vm"], ["most"], name="body_most"),
            helper.make_node("Sub", ["vm", "most"], ["less"], name="body_less"),
            helper.make_node("Sigmoid", ["less"], ["v_out"], name="body_sigmoid"),
            helper.make_node("Identity", ["c_in"], ["c_out"], name="body_cond"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v_in", FLOAT, [1, 1, 3]),
        ],
        [
            helper.make_tensor_value_info("c_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v_out", FLOAT, [1, 1, 3]),
        ],
        [numpy_helper.from_array(np.eye(3, dtype=np.float32) / 2, "bw")],
    )
    nodes = [helper.make_node("Loop", ["trips", "go", "x"], ["y"], body=body)]
    weights = {"trips": np.array(3, np.int64), "go": np.array([True]).reshape(())}
    return model(nodes, [("x", [1, 1, 3])], [("y", [1, 1, 3])], weights)


@pytest.mark.parametrize("embed", ["0", "1"])
@pytest.mark.parametrize("make", [branching, looped, scanned], ids=lambda make: make.__name__)
def test_partitions_in_bodies_are_written_and_reloaded(
    tmp_path: Path, make: Any, embed: str
) -> None:
    proto = make()
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    write(tmp_path / "m.onnx", embed_mode=embed)
    written = onnx.load(tmp_path / "m_ctx.onnx").graph
    assert [n for n in context_nodes(written) if n not in list(written.node)]
    used = options({"session.disable_model_compile": "1"})
    with ort.InferenceSession(tmp_path / "m_ctx.onnx", used, providers=[OPENVINO]) as session:
        found = session.run(None, feed(proto))
    expected = ReferenceEvaluator(proto).run(None, feed(proto))
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)


def test_all_initializers_that_stay_go_to_the_file_those_of_bodies_too(tmp_path: Path) -> None:
    """The bodies' TopK stays, and with it its weights."""

    def branch(name: str) -> onnx.GraphProto:
        big = numpy_helper.from_array(np.arange(4, dtype=np.float32).reshape(2, 2), f"{name}_b")
        k = numpy_helper.from_array(np.array([2], np.int64), f"{name}_k")
        nodes = [
            helper.make_node("TopK", ["h", f"{name}_k"], [f"{name}_t", f"{name}_at"]),
            helper.make_node("Add", [f"{name}_t", f"{name}_b"], [f"{name}_y"]),
        ]
        out = helper.make_tensor_value_info(f"{name}_y", FLOAT, [2, 2])
        return helper.make_graph(nodes, name, [], [out], [big, k])

    nodes = [
        helper.make_node("Abs", ["x"], ["h"]),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["positive"]),
        helper.make_node(
            "If", ["positive"], ["y"], then_branch=branch("t"), else_branch=branch("e")
        ),
    ]
    weights = {"zero": np.array(0.0, np.float32)}
    proto = model(nodes, [("x", [2, 2])], [("y", [2, 2])], weights)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    write(tmp_path / "m.onnx", model_external_initializers_file_name="w.data")
    loaded = onnx.load(tmp_path / "m_ctx.onnx", load_external_data=False)
    kept = [
        tensor
        for node in loaded.graph.node
        for attribute in node.attribute
        if attribute.type == onnx.AttributeProto.GRAPH
        for tensor in attribute.g.initializer
    ]
    assert kept
    assert all(tensor.data_location == TensorProto.EXTERNAL for tensor in kept)
    expected = ReferenceEvaluator(proto).run(None, feed(proto))[0]  # type: ignore[index] # `run` returns a list
    np.testing.assert_allclose(load(tmp_path / "m_ctx.onnx", proto), expected, rtol=1e-6)


def glued(parts: list[Path]) -> ModelProto:
    """Context models side by side, as a person would glue them: `x` into each, `y0`, `y1`, ...."""
    nodes, values, weights = [], [], []
    for i, path in enumerate(parts):
        graph = onnx.load(path).graph
        renamed = {"x": "x", "y": f"y{i}"}
        for node in graph.node:
            node.input[:] = [renamed.get(n, f"g{i}_{n}") for n in node.input]
            node.output[:] = [renamed.get(n, f"g{i}_{n}") for n in node.output]
            nodes.append(node)
        for info in graph.value_info:
            info.name = f"g{i}_{info.name}"
            values.append(info)
        for tensor in graph.initializer:
            tensor.name = f"g{i}_{tensor.name}"
            weights.append(tensor)
    outputs = [(f"y{i}", [2, 3]) for i in range(len(parts))]
    made = model(nodes, [("x", [2, 4])], outputs, contrib=True)
    made.graph.value_info.extend(values)
    made.graph.initializer.extend(weights)
    return made


@pytest.mark.parametrize("embed", ["0", "1"])
def test_glued_models_of_one_structure_keep_their_own_weights(tmp_path: Path, embed: str) -> None:
    """Partition names depend on the structure, so both contexts hold partitions of one name."""
    one, two = sandwich(), sandwich()
    for tensor in two.graph.initializer:
        if tensor.name in "wv":
            tensor.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(tensor), tensor.name))
    parts, expected = [], []
    for i, proto in enumerate((one, two)):
        path = tmp_path / f"m{i}.onnx"
        path.write_bytes(proto.SerializeToString())
        expected += write(path, embed_mode=embed)
        parts.append(path.with_name(f"m{i}_ctx.onnx"))
    made = glued(parts)
    (tmp_path / "glued.onnx").write_bytes(made.SerializeToString())
    with ort.InferenceSession(tmp_path / "glued.onnx", providers=[OPENVINO]) as session:
        found = session.run(None, feed(one))
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, right)


def test_a_foreign_secondary_node_that_two_contexts_could_mean_is_refused(tmp_path: Path) -> None:
    """Without a digest in its notes nothing tells which."""
    parts = []
    for i in range(2):
        path = tmp_path / f"m{i}.onnx"
        path.write_bytes(sandwich().SerializeToString())
        write(path, embed_mode="1")
        parts.append(path.with_name(f"m{i}_ctx.onnx"))
    made = glued(parts)
    for node in made.graph.node:
        kept = [a for a in node.attribute if a.name != "notes"]
        del node.attribute[:]
        node.attribute.extend(kept)
    with pytest.raises(ort.InvalidGraph, match=r"2 nodes of source .* hold its partition") as found:
        ort.InferenceSession(made.SerializeToString(), providers=[OPENVINO])
    assert found.value.reason == "missing_payload"
