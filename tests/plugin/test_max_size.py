"""`max_size`: recorded for an EP that has working memory in common, agreed on in a group."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import feed, model

import ort_lite as ort
from ctx_formats.ep_context import EpContextNode
from ctx_formats.model_reader import read_model
from ctx_formats.notes import read_notes
from ort_lite.context.nodes import is_context_node
from ort_lite.model.bodies import walk_nodes
from ort_lite.providers import catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugin.installed_site import Site

NAME = "SpillingExecutionProvider"
MODULE = Path(__file__).with_name("spilling_ep.py")
SMALL, LARGE = 8, 32


@pytest.fixture
def told(installed: Site) -> Callable[[], list[tuple[str, int]]]:
    """What the EP's instances are told, in order; forgotten when it is read."""
    shutil.copy(MODULE, installed.folder)
    installed.add_distribution("spilling", {catalog.GROUP: {NAME: "spilling_ep:FACTORY"}})

    def read() -> list[tuple[str, int]]:
        provider: Any = sys.modules["spilling_ep"].SpillingExecutionProvider
        found = list(provider.told)
        provider.told.clear()
        return found

    return read


def wide(width: int, x: str = "x", y: str = "y") -> onnx.ModelProto:
    """y = x @ w, w [width, width]."""
    w = np.random.default_rng(width).standard_normal((width, width)).astype(np.float32)
    node = helper.make_node("MatMul", [x, "w"], [y])
    return model([node], [(x, [2, width])], [(y, [2, width])], {"w": w})


def branching() -> onnx.ModelProto:
    """y = (x @ w8, then what the EP does not take, then @ w32); z = in a body, @ w16."""
    random = np.random.default_rng(3)
    weights = {
        "w": random.standard_normal((SMALL, SMALL)).astype(np.float32),
        "v": random.standard_normal((SMALL, LARGE)).astype(np.float32),
    }
    inner = [helper.make_node("MatMul", ["t", "u"], ["z"])]
    u = onnx.numpy_helper.from_array(random.standard_normal((SMALL, 2)).astype(np.float32), "u")
    body = helper.make_graph(
        inner, "body", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 2])], [u]
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Tanh", ["xw"], ["t"]),
        helper.make_node("MatMul", ["t", "v"], ["y"]),
        helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
        helper.make_node("IsNaN", ["top"], ["odd"]),
        helper.make_node("If", ["odd"], ["b"], then_branch=body, else_branch=body),
    ]
    return model(nodes, [("x", [2, SMALL])], [("y", [2, LARGE]), ("b", [2, 2])], weights)


def compiled(path: Path, group: ort.SharedContexts | None = None, **entries: str) -> list[Any]:
    options = ort.SessionOptions()
    options.add_provider(NAME)
    options.add_session_config_entry("ep.context_enable", "1")
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    if group is not None:
        group.join(options)
    with ort.InferenceSession(path, options) as session:
        return session.run(None, feed(onnx.load(path)))


def saved(path: Path, proto: onnx.ModelProto) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def context_nodes(path: Path) -> list[EpContextNode]:
    graph = read_model(memoryview(path.read_bytes())).graph
    return [EpContextNode.from_node(n) for n in walk_nodes(graph) if is_context_node(n)]


def sizes(path: Path) -> list[int]:
    return [node.max_size for node in context_nodes(path)]


def check(path: Path, plain: Path, expected: list[Any]) -> None:
    """It loads with its seals intact, and computes what it did."""
    assert all(read_notes(node) is not None for node in context_nodes(path))
    with ort.InferenceSession(path, providers=[NAME]) as session:
        for mine, right in zip(session.run(None, feed(onnx.load(plain))), expected, strict=True):
            np.testing.assert_array_equal(mine, right)


def square(width: int) -> int:
    return 4 * width * width


@pytest.mark.parametrize("embed", ["0", "1"])
def test_every_main_node_records_the_size_of_the_largest(
    told: Callable[[], list[tuple[str, int]]], tmp_path: Path, embed: str
) -> None:
    plain = saved(tmp_path / "m.onnx", branching())
    expected = compiled(plain, ep__context_embed_mode=embed)
    nodes = context_nodes(tmp_path / "m_ctx.onnx")
    assert len(nodes) >= 3
    assert {node.max_size for node in nodes if node.main_context} == {4 * SMALL * LARGE}
    assert not any(node.max_size for node in nodes if not node.main_context)
    told()
    check(tmp_path / "m_ctx.onnx", plain, expected)
    heard = told()
    assert heard[0] == ("reserve", 4 * SMALL * LARGE), "before anything is imported, once"
    assert [what for what, _ in heard].count("reserve") == 1
    assert len(heard) == 1 + len(nodes)


@pytest.mark.parametrize("order", [(SMALL, LARGE), (LARGE, SMALL)], ids=["last", "first"])
def test_contexts_of_a_group_record_the_largest_of_all(
    told: Callable[[], list[tuple[str, int]]], tmp_path: Path, order: tuple[int, int]
) -> None:
    """ONNX Runtime's ep_weight_sharing_ctx_gen sets out to do it, and changes nothing."""
    plain = [saved(tmp_path / f"m{i}.onnx", wide(width)) for i, width in enumerate(order)]
    with ort.SharedContexts() as group:
        results = [compiled(path, group) for path in plain]
    made = [path.with_name(f"{path.stem}_ctx.onnx") for path in plain]
    assert [sizes(path) for path in made] == [[square(LARGE)], [square(LARGE)]]
    told()
    for path, source, expected in zip(made, plain, results, strict=True):
        check(path, source, expected)
    assert [size for what, size in told() if what == "reserve"] == [square(LARGE)] * 2
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_session_that_failed_leaves_its_size_to_nobody(
    told: Callable[[], list[tuple[str, int]]], tmp_path: Path
) -> None:
    small, large = (saved(tmp_path / f"{w}.onnx", wide(w)) for w in (SMALL, LARGE))
    (tmp_path / "taken.onnx").write_bytes(b"mine")
    with ort.SharedContexts() as group:
        compiled(small, group)
        with pytest.raises(ort.Fail, match="exists already"):
            compiled(large, group, ep__context_file_path=str(tmp_path / "taken.onnx"))
    assert sizes(tmp_path / f"{SMALL}_ctx.onnx") == [square(SMALL)]
    assert told() == []


def test_the_largest_context_of_a_model_is_imported_first(
    told: Callable[[], list[tuple[str, int]]], tmp_path: Path
) -> None:
    """Two contexts glued together, the smaller in front."""
    for width in (SMALL, LARGE):
        compiled(saved(tmp_path / f"{width}.onnx", wide(width)))
    nodes = []
    for width, (x, y) in ((SMALL, ("a", "b")), (LARGE, ("c", "d"))):
        (node,) = onnx.load(tmp_path / f"{width}_ctx.onnx").graph.node
        node.input[0], node.output[0] = x, y
        nodes.append(node)
    shapes = [("a", [2, SMALL]), ("c", [2, LARGE])], [("b", [2, SMALL]), ("d", [2, LARGE])]
    glued = saved(tmp_path / "glued.onnx", model(nodes, *shapes, contrib=True))
    told()
    ort.InferenceSession(glued, providers=[NAME]).close()
    assert told() == [
        ("reserve", square(LARGE)),
        ("import", square(LARGE)),
        ("import", square(SMALL)),
    ]
