"""com.microsoft MoE and QMoE on the CPU EP, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from unit.cpu_contrib.peer import RANDOM, Array, agree, both, f32, u8

import ort_lite as ort
from eps.cpu.kernels import few_bit_panels

TOKENS, EXPERTS, HIDDEN, INTER = 7, 5, 64, 96
INITIALIZERS = (2, 3, 4, 5, 6, 7, 11, 12)


def experts(
    bits: int = 4,
    *,
    block: int = 0,
    zeros: bool = False,
    bias: bool = False,
    mixing: bool = False,
    doubled: bool = False,
    shape: tuple[int, ...] = (TOKENS, HIDDEN),
) -> list[Array | None]:
    """Inputs of a QMoE; `doubled`: fc1 makes a gate and what it is multiplied with."""
    each = 8 // bits
    inner = INTER * (2 if doubled else 1)
    inputs: list[Array | None] = [f32(*shape), f32(TOKENS, EXPERTS), *[None] * 13]
    for at, width, depth in ((2, inner, HIDDEN), (5, HIDDEN, INTER)):
        columns = (depth // block,) if block else ()
        inputs[at] = u8(EXPERTS, width, depth // each)
        scales = RANDOM.uniform(0.5, 1.5, (EXPERTS, width, *columns)) / (4 << bits)
        inputs[at + 1] = scales.astype(np.float32)
        if bias:
            inputs[at + 2] = f32(EXPERTS, width)
        if zeros:
            packed = (width, -(-columns[0] // each)) if block else (-(-width // each),)
            inputs[11 if at == 2 else 12] = u8(EXPERTS, *packed)
    if mixing:
        inputs[14] = RANDOM.uniform(0.1, 1, (TOKENS, EXPERTS)).astype(np.float32)
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def constants_of(inputs: list[Array | None]) -> tuple[int, ...]:
    return tuple(i for i in INITIALIZERS if i < len(inputs) and inputs[i] is not None)


def compare(inputs: list[Array | None], **attributes: Any) -> None:
    agree("QMoE", inputs, constants=constants_of(inputs), **attributes)


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalises", [0, 1])
def test_the_best_experts_of_each_token(kind: str, normalises: int) -> None:
    for top in (1, 2, EXPERTS):
        common = {"activation_type": kind, "normalize_routing_weights": normalises}
        compare(experts(), k=top, expert_weight_bits=4, **common)


@pytest.mark.parametrize("op", ["MoE", "QMoE"])
def test_of_equal_scores_the_last_expert_is_taken(op: str) -> None:
    """As by onnxruntime."""
    inputs = float_experts() if op == "MoE" else experts()
    inputs[1] = RANDOM.integers(0, 2, (TOKENS, EXPERTS)).astype(np.float32)
    for top in (1, 2, 3):
        agree(op, inputs, constants=(2,), k=top, activation_type="relu")


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 32])
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_of_few_bits_by_columns_and_by_blocks(bits: int, block: int, zeros: bool) -> None:  # noqa: FBT001 - a case
    sizes = {"block_size": block} if block else {}
    inputs = experts(bits, block=block, zeros=zeros, bias=True)
    common = {"k": 2, "expert_weight_bits": bits, "activation_type": "silu", **sizes}
    if bits != 8 or not block:
        compare(inputs, **common)
        return
    # onnxruntime's CPU has no such kernel of floats: it quantises inputs to 8 bits.
    (mine,), (theirs,) = both("QMoE", inputs, constants=constants_of(inputs), **common)
    assert float(np.abs(mine - theirs).max()) < 2e-2 * float(np.abs(theirs).max())


@pytest.mark.parametrize("columns", [1, 7, 96])
@pytest.mark.parametrize("block", [0, 32])
def test_weights_are_unpacked_by_panels_of_any_width(
    columns: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one has fewer columns; zero points and scales belong to a panel's columns."""
    monkeypatch.setattr(few_bit_panels, "PANEL_BYTES", columns * HIDDEN * 4)
    sizes = {"block_size": block} if block else {}
    inputs = experts(4, block=block, zeros=True, bias=True)
    compare(inputs, k=2, expert_weight_bits=4, activation_type="silu", **sizes)


LIMITS = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.5}


@pytest.mark.parametrize("limits", [{}, LIMITS], ids=str)
def test_gated_experts(limits: dict[str, float]) -> None:
    inputs = experts(doubled=True, bias=True, block=32)
    common = {"activation_type": "swiglu", "k": 2, "normalize_routing_weights": 1, **limits}
    compare(inputs, swiglu_fusion=1, block_size=32, **common)


def test_halves_of_gated_experts_are_neighbours_in_another_order() -> None:
    """onnxruntime's CPU computes neighbours alone (swiglu_fusion 1)."""
    inputs = experts(doubled=True, bias=True, block=32, zeros=True)
    common = {"activation_type": "swiglu", "k": 2, "block_size": 32}
    constants = constants_of(inputs)
    _, theirs = both("QMoE", inputs, constants=constants, swiglu_fusion=1, **common)
    for at in (2, 3, 4, 11):
        value = inputs[at]
        assert value is not None
        inputs[at] = np.concatenate([value[:, 0::2], value[:, 1::2]], 1)
    model = one_node(inputs, swiglu_fusion=2, **common)
    with ort.InferenceSession(model, providers=["CPUExecutionProvider"]) as session:
        (mine,) = session.run(None, {f"i{n}": v for n, v in enumerate(inputs) if v is not None})
    np.testing.assert_allclose(mine, theirs[0], rtol=3e-5, atol=3e-5)


def one_node(inputs: list[Array | None], op: str = "QMoE", **attributes: Any) -> bytes:
    """A model of a node with these inputs, none of them constant."""
    names = ["" if value is None else f"i{n}" for n, value in enumerate(inputs)]
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in zip(names, inputs, strict=True)
        if value is not None
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [TOKENS, HIDDEN])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos, [y])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"activation_type": "tanh"}, "activation_type is 'tanh', expected relu"),
        ({"activation_type": "swiglu"}, "swiglu_fusion is 0, expected 1 or 2"),
        ({"quant_type": "fp4"}, "quant_type is 'fp4', expected 'int'"),
        ({"expert_weight_bits": 3}, "expected 2, 4 or 8"),
        ({"use_sparse_mixer": 1}, "use_sparse_mixer is 1, expected 0"),
        ({"weights_prepacked": 1}, "weights_prepacked is 1, expected 0"),
        ({"k": 0}, "k is 0, expected at least 1"),
    ],
    ids=str,
)
def test_forms_that_are_not_computed_are_refused(attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=text) as caught:
        ort.InferenceSession(one_node(experts(), **attributes), providers=["CPUExecutionProvider"])
    assert type(caught.value).__module__.startswith("ort_lite")


def test_a_third_projection_and_missing_scales_are_refused() -> None:
    inputs = [*experts(), *[None] * 8][:15]
    inputs[8] = inputs[2]
    with pytest.raises(Exception, match="fc3"):
        ort.InferenceSession(one_node(inputs), providers=["CPUExecutionProvider"])
    inputs[8], inputs[3] = None, None
    with (
        ort.InferenceSession(one_node(inputs), providers=["CPUExecutionProvider"]) as session,
        pytest.raises(Exception, match="no weights or scales"),
    ):
        session.run(None, {f"i{n}": v for n, v in enumerate(inputs) if v is not None})


@pytest.mark.parametrize("normalises", [0, 1])
def test_shares_that_are_given(normalises: int) -> None:
    inputs = experts(mixing=True)
    compare(inputs, k=3, normalize_routing_weights=normalises, activation_type="relu")


def test_a_batch_of_sequences() -> None:
    compare(experts(shape=(1, TOKENS, HIDDEN)), k=2, activation_type="relu")


def float_experts(*, bias: bool = True, doubled: bool = False) -> list[Array | None]:
    """Inputs of a MoE; weights as the schema has them, [experts, N, K]."""
    inner = INTER * (2 if doubled else 1)
    weights = [f32(EXPERTS, inner, HIDDEN) / 8, f32(EXPERTS, HIDDEN, INTER) / 8]
    biases = [f32(EXPERTS, inner), f32(EXPERTS, HIDDEN)] if bias else [None, None]
    inputs = [f32(TOKENS, HIDDEN), f32(TOKENS, EXPERTS), weights[0], biases[0], weights[1]]
    return [*inputs, biases[1]] if bias else inputs


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalises", [0, 1])
def test_experts_of_floats(kind: str, normalises: int) -> None:
    for top in (1, 2, EXPERTS):
        common = {"activation_type": kind, "normalize_routing_weights": normalises, "k": top}
        agree("MoE", float_experts(bias=top == 2), constants=(2,), **common)


@pytest.mark.parametrize("limits", [{}, LIMITS], ids=str)
def test_gated_experts_of_floats(limits: dict[str, float]) -> None:
    common = {"activation_type": "swiglu", "swiglu_fusion": 1, "k": 2, **limits}
    agree("MoE", float_experts(doubled=True), constants=(2, 4), **common)


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"activation_type": "tanh"}, "MoE: activation_type is 'tanh', expected relu"),
        ({"use_sparse_mixer": 1}, "use_sparse_mixer is 1, expected 0"),
        ({"k": 0}, "k is 0, expected at least 1"),
    ],
    ids=str,
)
def test_forms_of_floats_that_are_not_computed_are_refused(
    attributes: dict[str, Any], text: str
) -> None:
    model = one_node(float_experts(), "MoE", **attributes)
    with pytest.raises(Exception, match=text):
        ort.InferenceSession(model, providers=["CPUExecutionProvider"])


def test_a_third_projection_of_floats_is_refused() -> None:
    model = one_node([*float_experts(), f32(EXPERTS, INTER, HIDDEN)], "MoE")
    with pytest.raises(Exception, match="a third projection, expected fc1 and fc2"):
        ort.InferenceSession(model, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("op", ["MoE", "QMoE"])
def test_more_experts_for_a_token_than_there_are_are_refused(op: str) -> None:
    """As by onnxruntime."""
    inputs = float_experts() if op == "MoE" else experts()
    model = one_node(inputs, op, k=EXPERTS + 1)
    fed = {f"i{n}": value for n, value in enumerate(inputs) if value is not None}
    for module in (ort, onnxruntime):
        session = module.InferenceSession(model, providers=["CPUExecutionProvider"])
        with pytest.raises(Exception, match=f"{EXPERTS} experts|num_experts"):
            session.run(None, fed)
