"""One model on three EPs, one of them somebody else's: each takes what is its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from plugin.installed_site import EXAMPLE, Site
from small_models import feed, model

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ort_lite.testing import ContextFile

if TYPE_CHECKING:
    from pathlib import Path

OPENVINO = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"
THREE = [EXAMPLE, OPENVINO]
OWNERS = {"matmul": EXAMPLE, "sigmoid": OPENVINO, "topk": CPU, "relu": EXAMPLE}


def mixed() -> onnx.ModelProto:
    """MatMul, Sigmoid, a TopK in an order that OpenVINO does not promise, Relu."""
    random = np.random.default_rng(4)
    weights = {"w": random.standard_normal((4, 4)).astype(np.float32), "k": np.array([2], np.int64)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="matmul"),
        helper.make_node("Sigmoid", ["a"], ["s"], name="sigmoid"),
        helper.make_node("TopK", ["s", "k"], ["top", "at"], name="topk"),
        helper.make_node("Relu", ["top"], ["y"], name="relu"),
    ]
    return model(nodes, [("x", [2, 4])], [("y", [2, 2])], weights)


def written(folder: Path, *, embed: bool) -> Path:
    """The context model of `mixed`, its source gone."""
    (folder / "m.onnx").write_bytes(mixed().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", str(int(embed)))
    ort.InferenceSession(folder / "m.onnx", options, providers=THREE).close()
    (folder / "m.onnx").unlink()
    return folder / "m_ctx.onnx"


def expected() -> np.ndarray:
    (right,) = ReferenceEvaluator(mixed()).run(None, feed(mixed()))
    return np.asarray(right)


def greedy() -> ort.SessionOptions:
    """Options with which an EP runs every node that it supports."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return options


def test_each_ep_takes_what_is_its_own(installed: Site) -> None:
    with ort.InferenceSession(mixed().SerializeToString(), greedy(), THREE) as session:
        placed = {n.name: n.ep for part in session.explain().partitions for n in part.nodes}
        assert placed == OWNERS
        np.testing.assert_allclose(session.run(None, feed(mixed()))[0], expected(), rtol=1e-5)


def test_the_first_ep_in_the_list_is_asked_first(installed: Site) -> None:
    data = mixed().SerializeToString()
    with ort.InferenceSession(data, greedy(), [OPENVINO, EXAMPLE]) as session:
        placed = {n.name: n.ep for part in session.explain().partitions for n in part.nodes}
    assert placed == {name: ep.replace(EXAMPLE, OPENVINO) for name, ep in OWNERS.items()}


@pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])
def test_each_ep_takes_only_its_source_from_a_context(
    installed: Site, tmp_path: Path, *, embed: bool
) -> None:
    path = written(tmp_path, embed=embed)
    nodes = ContextFile(path, None).nodes()
    assert [node.source for node in nodes] == [EXAMPLE, OPENVINO, EXAMPLE]
    onnx.checker.check_model(onnx.load(path), full_check=True)
    for providers in (THREE, THREE[::-1]):
        with ort.InferenceSession(path, providers=providers) as session:
            parts = session.explain().partitions
            assert [part.ep for part in parts] == [EXAMPLE, OPENVINO, CPU, EXAMPLE]
            assert [part.origin for part in parts] == ["context", "context", "compiled", "context"]
            np.testing.assert_allclose(session.run(None, feed(mixed()))[0], expected(), rtol=1e-5)


def test_each_ep_has_a_payload_file_of_its_own(installed: Site, tmp_path: Path) -> None:
    written(tmp_path, embed=False)
    assert sorted(path.name for path in tmp_path.glob("*.bin")) == [
        f"m_{EXAMPLE}.bin",
        f"m_{OPENVINO}.bin",
    ]


def test_embedded_each_ep_has_a_main_context_of_its_own(installed: Site, tmp_path: Path) -> None:
    nodes = ContextFile(written(tmp_path, embed=True), None).nodes()
    assert [node.main_context for node in nodes] == [True, True, False]


@pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])
def test_contexts_of_different_eps_are_glued_by_hand(
    installed: Site, tmp_path: Path, *, embed: bool
) -> None:
    """Two models, compiled apart by one EP each, one behind the other."""
    w = np.random.default_rng(5).standard_normal((4, 4)).astype(np.float32)
    shapes = [("x", [2, 4])], [("y", [2, 4])]
    first = model([helper.make_node("MatMul", ["x", "w"], ["y"])], *shapes, {"w": w})
    second = model([helper.make_node("Sigmoid", ["x"], ["y"])], *shapes)
    nodes = []
    for name, proto, ep in (("a", first, EXAMPLE), ("b", second, OPENVINO)):
        options = ort.SessionOptions()
        options.add_provider(ep)
        options.add_session_config_entry("ep.context_node_name_prefix", f"{name}_")
        compiler = ort.ModelCompiler(options, proto.SerializeToString(), embed)
        compiler.compile_to_file(tmp_path / f"{name}.onnx")
        nodes += onnx.load(tmp_path / f"{name}.onnx").graph.node
    nodes[0].output[0] = nodes[1].input[0] = "middle"
    glued = model(nodes, *shapes, contrib=True)
    middle = helper.make_tensor_value_info("middle", onnx.TensorProto.FLOAT, [2, 4])
    glued.graph.value_info.append(middle)
    (tmp_path / "glued.onnx").write_bytes(glued.SerializeToString())
    right = 1 / (1 + np.exp(-(feed(first)["x"] @ w)))
    for providers in (THREE, THREE[::-1]):
        with ort.InferenceSession(tmp_path / "glued.onnx", providers=providers) as session:
            assert [part.ep for part in session.explain().partitions] == [EXAMPLE, OPENVINO]
            np.testing.assert_allclose(session.run(None, feed(first))[0], right, rtol=1e-5)


@pytest.mark.parametrize(("kept", "missed"), [(EXAMPLE, OPENVINO), (OPENVINO, EXAMPLE)])
def test_a_session_that_lacks_one_of_them_names_it(
    installed: Site, tmp_path: Path, kept: str, missed: str
) -> None:
    path = written(tmp_path, embed=False)
    with pytest.raises(ort.NotImplemented, match=f"generated by '{missed}' is not compatible"):
        ort.InferenceSession(path, providers=[kept])


def test_the_payload_of_another_ep_is_refused(installed: Site, tmp_path: Path) -> None:
    """Both files swapped: good containers, each without the partitions it should hold."""
    path = written(tmp_path, embed=False)
    mine, theirs = (tmp_path / f"m_{name}.bin" for name in THREE)
    mine.rename(tmp_path / "x")
    theirs.rename(mine)
    (tmp_path / "x").rename(theirs)
    with pytest.raises(ort.InvalidGraph, match="no payload called") as found:
        ort.InferenceSession(path, providers=THREE)
    assert found.value.reason == "missing_payload"


def test_a_group_has_a_payload_file_of_each_ep(installed: Site, tmp_path: Path) -> None:
    """The example EP shares its weights, OpenVINO has none here; two models, four files."""
    with ort.SharedContexts() as group:
        for name in ("m", "n"):
            (tmp_path / f"{name}.onnx").write_bytes(mixed().SerializeToString())
            options = group.join(ort.SessionOptions())
            options.add_session_config_entry("ep.context_enable", "1")
            ort.InferenceSession(tmp_path / f"{name}.onnx", options, providers=THREE).close()
    assert sorted(path.name for path in tmp_path.glob("*.bin")) == [
        f"m_{EXAMPLE}.bin",
        f"m_{OPENVINO}.bin",
    ]
    found = read_container(memoryview((tmp_path / f"m_{EXAMPLE}.bin").read_bytes()))
    assert sorted(entry.weights for entry in found.entries.values()) == [(), (), ("0",), ("0",)]
    with ort.SharedContexts() as group:
        for name in ("m", "n"):
            options = group.join(ort.SessionOptions())
            path = tmp_path / f"{name}_ctx.onnx"
            with ort.InferenceSession(path, options, providers=THREE) as session:
                found_values = session.run(None, feed(mixed()))[0]
            np.testing.assert_allclose(found_values, expected(), rtol=1e-5)
        assert group.waiting_contexts == ()
        assert group.payload_files.reads == 2
