"""Contexts go both ways between ort_lite and ONNX Runtime with Intel's OpenVINO plug-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from context_models import OPENVINO, compile_context
from interop.peer import Peer, PeerError
from onnx import helper
from small_models import feed, mlp, model, sandwich

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

EMBED = pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])
REAL = "silero_vad_static"
RTOL, ATOL = 1e-5, 1e-6  # one OpenVINO, one device; its options may choose other kernels


def split() -> onnx.ModelProto:
    """A Binarizer, which neither side gives to OpenVINO, between two pairs of nodes."""
    random = np.random.default_rng(3)
    weights = {name: random.standard_normal((4, 4)).astype(np.float32) for name in ("w", "v")}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Softmax", ["a"], ["b"], name="softmax"),
        helper.make_node(
            "Binarizer", ["b"], ["c"], "binarizer", domain="ai.onnx.ml", threshold=0.3
        ),
        helper.make_node("MatMul", ["c", "v"], ["d"], name="last"),
        helper.make_node("Softmax", ["d"], ["y"], name="softmax_too"),
    ]
    made = model(nodes, [("x", [2, 4])], [("y", [2, 4])], weights)
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    return made


SMALL = pytest.mark.parametrize(
    ("make", "partitions"),
    [(mlp, 1), (lambda: mlp("rows"), 1), (split, 2)],
    ids=["one", "dynamic", "several"],
)


def context_nodes(path: Path) -> list[onnx.NodeProto]:
    return [node for node in onnx.load(path).graph.node if node.op_type == "EPContext"]


def assert_close(found: list[Array], expected: list[Array]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=RTOL, atol=ATOL)


def theirs(peer: Peer, folder: Path, proto: onnx.ModelProto, *, embed: bool) -> Path:
    """The context model that the plug-in writes; its source is gone."""
    source, target = folder / "t.onnx", folder / "t_ctx.onnx"
    source.write_bytes(proto.SerializeToString())
    peer.compile_context(source, target, embed=embed)
    source.unlink()
    return target


@EMBED
@SMALL
def test_ours_runs_in_onnxruntime(
    plugin: Peer,
    tmp_path: Path,
    make: Callable[[], onnx.ModelProto],
    partitions: int,
    *,
    embed: bool,
) -> None:
    made = compile_context(tmp_path, make(), feed(make()), embed=embed)
    assert len(context_nodes(made.path)) == partitions
    (tmp_path / "m.onnx").unlink()
    assert_close(plugin.run(made.path, made.feed, plugin=True), made.expected)


def test_ours_with_other_nodes_between_runs_in_onnxruntime(plugin: Peer, tmp_path: Path) -> None:
    """A TopK that ort_lite keeps on the CPU EP and the plug-in would have taken."""
    made = compile_context(tmp_path, sandwich(), feed(sandwich()), embed=False)
    assert len(context_nodes(made.path)) == 2
    assert_close(plugin.run(made.path, made.feed, plugin=True), made.expected)


@EMBED
@SMALL
def test_theirs_runs_in_ort_lite(
    plugin: Peer,
    tmp_path: Path,
    make: Callable[[], onnx.ModelProto],
    partitions: int,
    *,
    embed: bool,
) -> None:
    path = theirs(plugin, tmp_path, make(), embed=embed)
    assert len(context_nodes(path)) == partitions
    with ort.InferenceSession(path, providers=[OPENVINO]) as session:
        parts = session.explain().partitions
        assert [part.origin for part in parts if part.ep == OPENVINO] == ["context"] * partitions
        found = session.run(None, feed(make()))
    assert_close(found, plugin.run(path, feed(make()), plugin=True))


@EMBED
def test_a_real_model_goes_both_ways(
    plugin: Peer,
    tmp_path: Path,
    model_path: Callable[[str], Path],
    example_inputs: Callable[[str], Mapping[str, Array]],
    *,
    embed: bool,
) -> None:
    proto, values = onnx.load(model_path(REAL)), dict(example_inputs(REAL))
    made = compile_context(tmp_path, proto, values, embed=embed)
    (tmp_path / "m.onnx").unlink()
    assert_close(plugin.run(made.path, values, plugin=True), made.expected)
    path = theirs(plugin, tmp_path, proto, embed=embed)
    with ort.InferenceSession(path, providers=[OPENVINO]) as session:
        assert_close(session.run(None, values), made.expected)


@EMBED
def test_theirs_has_no_recorded_integrity(plugin: Peer, tmp_path: Path, *, embed: bool) -> None:
    path = theirs(plugin, tmp_path, split(), embed=embed)
    verdicts = ort.check_compatibility(path)
    assert [verdict.integrity for verdict in verdicts] == ["not recorded"] * 2
    assert {verdict.verdict for verdict in verdicts} == {
        ort.CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
    }
    options = ort.SessionOptions()
    options.add_session_config_entry("session.require_payload_digest", "1")
    with pytest.raises(ort.InvalidGraph, match="no digest recorded by 'onnxruntime-") as found:
        ort.InferenceSession(path, options, providers=[OPENVINO])
    assert found.value.reason == "integrity"


def test_theirs_without_its_payload_is_refused(plugin: Peer, tmp_path: Path) -> None:
    path = theirs(plugin, tmp_path, mlp(), embed=False)
    (payload,) = tmp_path.glob("*.bin")
    payload.unlink()
    with pytest.raises(ort.InvalidGraph, match=payload.name) as found:
        ort.InferenceSession(path, providers=[OPENVINO])
    assert found.value.reason == "missing_payload"


def test_onnxruntime_calls_ours_compatible(plugin: Peer, tmp_path: Path) -> None:
    """`ep_compatibility_info`, by the plug-in's own judgement."""
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    answer = plugin.compatibility(made.path, plugin=True)
    assert answer["verdict"] == "EP_SUPPORTED_OPTIMAL"


def test_onnxruntime_needs_our_payload_too(plugin: Peer, tmp_path: Path) -> None:
    """What it computed above came from the payload: without it there is nothing to run."""
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    assert made.payload is not None
    made.payload.unlink()
    with pytest.raises(PeerError, match=made.payload.name):
        plugin.run(made.path, made.feed, plugin=True)
