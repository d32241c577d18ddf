"""Decoders of language models on OpenVINO: one partition, attention to a cache written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from decoder_runs import (
    STEPS,
    VARIANTS,
    assert_close,
    fix_sizes,
    run_in_onnxruntime,
    run_steps,
    step_feed,
    write_decoder,
)
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from eps.openvino.payload.blob_header import read_positions, write_positions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

OPENVINO = ["OpenVINOExecutionProvider"]
CONTRIB = "com.microsoft"
HEADS, GROUPS, SIZE = 4, 2, 16
RANDOM = np.random.default_rng(7)


def f32(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def one_node(
    op_type: str, inputs: Sequence[Array | None], fixed: Sequence[int], outputs: int, **fields: Any
) -> tuple[bytes, dict[str, Array]]:
    """A model of one node, and its feed; inputs at the `fixed` positions are initializers."""
    infos, weights, feed = [], [], {}
    for i, value in enumerate(inputs):
        if value is None:
            continue
        if i in fixed:
            weights.append(numpy_helper.from_array(value, f"x{i}"))
        else:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            infos.append(helper.make_tensor_value_info(f"x{i}", kind, value.shape))
            feed[f"x{i}"] = value
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, **fields)
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
    graph = helper.make_graph([node], "one", infos, made, weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString(), feed


def cached(
    new: int, past: int, *, room: int = 0, batch: int = 1, packed: bool = False
) -> list[Array | None]:
    """Inputs of a GroupQueryAttention after `past` positions, in a cache of more room or none."""
    width, total = GROUPS * SIZE, np.array(max(new + past, room), np.int32)
    apart = [f32(batch, new, HEADS * SIZE), f32(batch, new, width), f32(batch, new, width)]
    inputs: list[Array | None] = [*apart]
    if packed:
        inputs = [np.concatenate(apart, 2), None, None]
    inputs += [f32(batch, GROUPS, room or past, SIZE) for _ in range(2)]
    angles = f32(64, SIZE // 2)
    lengths = np.full(batch, new + past - 1, np.int32)
    return [*inputs, lengths, total, np.cos(angles), np.sin(angles)]


def run_both(
    model: bytes, feed: dict[str, Array], *, placement: str = "all"
) -> tuple[list[Any], list[Any]]:
    """Outputs by OpenVINO, which gets every node, and by onnxruntime."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", placement)
    providers = [*OPENVINO, "CPUExecutionProvider"]
    with ort.InferenceSession(model, options, providers) as session:
        nodes = [n for p in session.explain().partitions for n in p.nodes]
        assert {n.op_type: n.refusals for n in nodes if n.ep not in OPENVINO} == {}
        mine = session.run(None, feed)
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return mine, theirs.run(None, feed)


@pytest.mark.parametrize(
    ("sizes", "fields"),
    [
        ({"new": 1, "past": 5}, {"do_rotary": 1}),
        ({"new": 1, "past": 40, "room": 50}, {"do_rotary": 1, "scale": 0.3}),
        ({"new": 3, "past": 4, "room": 20}, {"softcap": 2.0, "local_window_size": 4}),
        ({"new": 6, "past": 0, "room": 20}, {"do_rotary": 1}),
        ({"new": 1, "past": 6, "batch": 3, "packed": True}, {"do_rotary": 1}),
    ],
    ids=str,
)
def test_attention_to_a_cache_agrees_with_onnxruntime(
    sizes: dict[str, Any], fields: dict[str, Any]
) -> None:
    inputs = cached(**sizes)
    model, feed = one_node(
        "GroupQueryAttention", inputs, (7, 8), 3, domain=CONTRIB, num_heads=HEADS,
        kv_num_heads=GROUPS, **fields,
    )  # fmt: skip
    mine, theirs = run_both(model, feed)
    valid = sizes["new"] + sizes["past"]
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-4, atol=1e-5)
    for present, right in zip(mine[1:], theirs[1:], strict=True):
        assert present.shape == right.shape
        np.testing.assert_allclose(present[:, :, :valid], right[:, :, :valid], 1e-4, 1e-5)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_a_quantised_table_agree_with_onnxruntime(*, bits: int, zeros: bool) -> None:
    table = RANDOM.integers(0, 256, (20, 64 * bits // 8)).astype(np.uint8)
    inputs: list[Array | None] = [table, np.array([[0, 7], [19, 3]], np.int64), f32(20, 2)]
    if zeros:
        inputs.append(RANDOM.integers(0, 256, (20, 2 * bits // 8)).astype(np.uint8))
    model, feed = one_node(
        "GatherBlockQuantized", inputs, (0, 2, 3), 1, domain=CONTRIB, bits=bits, block_size=32,
        gather_axis=0, quantize_axis=1,
    )  # fmt: skip
    mine, theirs = run_both(model, feed)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5, atol=1e-6)


def test_a_root_mean_square_norm_agrees_with_onnxruntime() -> None:
    fields = {"axis": -1, "epsilon": 1e-6, "stash_type": 1}
    inputs = [f32(2, 3, 32), f32(32)]
    model, feed = one_node("SimplifiedLayerNormalization", inputs, (1,), 1, **fields)
    mine, theirs = run_both(model, feed)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"smooth_softmax": 1}, "smooth_softmax"),
        ({"do_rotary": 1, "rotary_interleaved": 1}, "rotary_interleaved"),
        ({"causal": 0}, "this form"),
    ],
)
def test_attention_that_is_not_written_out_is_refused_with_the_reason(
    fields: dict[str, Any], reason: str
) -> None:
    sizes = {"domain": CONTRIB, "num_heads": HEADS, "kv_num_heads": GROUPS}
    model, _ = one_node("GroupQueryAttention", cached(1, 5), (7, 8), 3, **sizes, **fields)
    with ort.InferenceSession(model, providers=[*OPENVINO, "CPUExecutionProvider"]) as session:
        (node,) = (n for p in session.explain().partitions for n in p.nodes)
    assert reason in node.refusals[OPENVINO[0]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_decoder_is_one_partition_and_gives_onnxruntimes_numbers(
    variant: str, tmp_path: Path
) -> None:
    path, shape = write_decoder(tmp_path, variant), VARIANTS[variant]
    with ort.InferenceSession(path, providers=OPENVINO) as session:
        (partition,) = session.explain().partitions
        assert {node.ep for node in partition.nodes} == set(OPENVINO)
        assert_close(run_steps(session, shape), run_in_onnxruntime(path, shape))


@pytest.mark.parametrize("variant", VARIANTS)
def test_caches_that_begin_empty_stay_with_openvino_also_after_a_reload(
    variant: str, tmp_path: Path
) -> None:
    path, shape = write_decoder(tmp_path, variant), VARIANTS[variant]
    right = run_in_onnxruntime(path, shape, room=None)
    context = tmp_path / "decoder_ctx.onnx"
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(context))
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with ort.InferenceSession(path, options, OPENVINO) as session:
        assert_close(run_steps(session, shape, room=None), right)
    with ort.InferenceSession(context, providers=OPENVINO) as session:
        assert_close(run_steps(session, shape, room=None), right)


def test_of_a_decoders_inputs_only_caches_may_be_empty(tmp_path: Path) -> None:
    path, shape = write_decoder(tmp_path, "plain"), VARIANTS["plain"]
    feed = step_feed(shape, np.zeros((1, 2), np.int64), 0, None, room=None)
    with ort.InferenceSession(path, providers=OPENVINO) as session:
        (part,) = session._present().prepared.partitions
        caches = {part.inputs[position] for position in part.compiled.empty_inputs}
        assert caches == {name for name in feed if name.startswith("past_key_values")}


@pytest.mark.parametrize(
    ("positions", "text"), [((), ""), ((3,), "3"), ((2, 3, 4, 8, 1), "1-4,8"), ((0, 2), "0,2")]
)
def test_positions_come_back_from_their_text(positions: tuple[int, ...], text: str) -> None:
    assert write_positions(positions) == text
    assert read_positions(text, 9) == set(positions)


@pytest.mark.parametrize(
    ("text", "count", "found"),
    [
        ("2-9999999999", 5, set()), ("1-999999999", 3, {1, 2}), ("a", 3, set()), ("1-", 3, {1}),
        ("-2", 3, set()), ("7", 3, set()), ("2-1", 3, set()), ("\u0662", 3, set()),
    ],
)  # fmt: skip
def test_a_text_of_anybodys_is_read_without_harm(text: str, count: int, found: set[int]) -> None:
    assert read_positions(text, count) == found


@pytest.mark.parametrize("variant", ["plain", "half"])
def test_contexts_of_prompts_and_of_tokens_come_back_as_a_group(
    variant: str, tmp_path: Path
) -> None:
    path, shape = write_decoder(tmp_path, variant), VARIANTS[variant]
    contexts = {tokens: tmp_path / f"decoder_{tokens}.onnx" for tokens in sorted(set(STEPS))}
    with ort.SharedContexts() as group:
        for tokens, context in contexts.items():
            options = group.join(fix_sizes(ort.SessionOptions(), tokens))
            options.add_session_config_entry("ep.context_enable", "1")
            options.add_session_config_entry("ep.context_file_path", str(context))
            ort.InferenceSession(path, options, OPENVINO).close()
    right = run_in_onnxruntime(path, shape)
    with ort.SharedContexts() as group:
        sessions = {
            tokens: ort.InferenceSession(context, group.join(ort.SessionOptions()), OPENVINO)
            for tokens, context in contexts.items()
        }
    assert_close(run_steps(sessions, shape), right)
    for session in sessions.values():
        session.close()
