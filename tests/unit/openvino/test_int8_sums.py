"""Quantised models on OpenVINO: sums are exact on every CPU, and nothing crashes."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort
from eps.openvino.compile.int8_sums import MODE, sums_saturate
from eps.openvino.sdk.binding import ov

DEPTH, WIDTH = 64, 8
OPENVINO = "OpenVINOExecutionProvider"
HEAD = '<ir_version: 9, opset_import: ["" : 20]>'
QUANTISED = "q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z)"
CPUINFO = Path("/proc/cpuinfo")

BODIES = {
    "MatMul": "b = DequantizeLinear (w, ws, wz) y = MatMul (a, b)",
    "Gemm": "b = DequantizeLinear (w, ws, wz) y = Gemm (a, b)",
    "two activations": (
        "qx = QuantizeLinear (v, s, z) b = DequantizeLinear (qx, s, z) y = MatMul (a, b)"
    ),
    "Conv": (
        "qi = QuantizeLinear (image, s, z) c = DequantizeLinear (qi, s, z) t = Transpose (w)"
        " u = Unsqueeze (t, ends) b = DequantizeLinear (u, ws, wz) y = Conv (c, b)"
    ),
}


def quantised_model(body: str, dtype: str, largest: int, text: str = QUANTISED) -> tuple[Any, Any]:
    """A model of random int8 weights up to `largest`, and a feed whose sums are large."""
    random = np.random.default_rng(0)
    zero = {"uint8": 3, "int8": -100}[dtype]
    weights = random.integers(largest // 2, largest + 1, (DEPTH, WIDTH))
    model = onnx.parser.parse_model(
        f"{HEAD} g (float[4, {DEPTH}] x, float[{DEPTH}, {WIDTH}] v,"
        f" float[1, {DEPTH}, 3, 3] image) => (y)"
        f" <float s = {{0.02}}, {dtype} z = {{{zero}}}, float ws = {{0.01}}, int8 wz = {{0}},"
        f" int64[2] ends = {{2, 3}}, float s2 = {{0.03}}> {{ {text} {body} }}"
    )
    model.graph.initializer.append(numpy_helper.from_array(weights.astype(np.int8), "w"))
    x = random.uniform(3, 5, (4, DEPTH)).astype(np.float32)
    v = random.uniform(-3, 5, (DEPTH, WIDTH)).astype(np.float32)
    image = random.uniform(3, 5, (1, DEPTH, 3, 3)).astype(np.float32)
    return model, {"x": x, "v": v, "image": image}


def run(model: Any, feed: Any, **options: str) -> tuple[Any, list[str]]:
    """The first output on OpenVINO alone, and the partition's notes."""
    with ort.InferenceSession(
        model.SerializeToString(), providers=[(OPENVINO, options)], enable_fallback=0
    ) as session:
        partitions = session.explain().partitions
        assert [partition.ep for partition in partitions] == [OPENVINO]
        return session.run(None, feed)[0], [n for each in partitions for n in each.notes]


@pytest.mark.parametrize("largest", [64, 127])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", BODIES)
def test_sums_of_quantised_products_are_those_of_the_reference(
    name: str, dtype: str, largest: int
) -> None:
    model, feed = quantised_model(BODIES[name], dtype, largest)
    result, notes = run(model, feed)
    (expected,) = ReferenceEvaluator(model).run(None, feed)
    assert np.abs(expected).max() > 50
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
    may_saturate = largest > 64 or name == "two activations"
    in_float = any("computed in float32: 8-bit sums saturate" in note for note in notes)
    assert in_float == (may_saturate and sums_saturate(ov.Core()))


def test_operators_of_quantised_tensors_sum_as_the_reference() -> None:
    """QLinearMatMul alone, without a QuantizeLinear in the partition."""
    model, feed = quantised_model(
        "y = QLinearMatMul (p, s, z, w, ws, wz, one, z)", "uint8", 127, ""
    )
    numbers = np.random.default_rng(0).integers(100, 256, (4, DEPTH)).astype(np.uint8)
    one = numpy_helper.from_array(np.array(1, np.float32), "one")
    model.graph.initializer.append(one)
    del model.graph.input[:]
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("p", onnx.TensorProto.UINT8, numbers.shape)
    )
    feed = {"p": numbers}
    result, _ = run(model, feed)
    (expected,) = ReferenceEvaluator(model).run(None, feed)
    assert 150 < expected.max() < 255
    np.testing.assert_allclose(result.astype(int), expected.astype(int), atol=1)  # rounding


@pytest.mark.skipif(
    not CPUINFO.exists() or platform.machine() != "x86_64", reason="x86-64 CPUs under Linux say"
)
def test_the_trial_saturates_where_the_cpu_has_no_vnni() -> None:
    flags = CPUINFO.read_text().partition("flags")[2].partition("\n")[0].split()
    assert sums_saturate(ov.Core()) == (not {"avx512_vnni", "avx_vnni"} & set(flags))


def test_the_transformations_stay_on_where_the_user_sets_them() -> None:
    model, feed = quantised_model(BODIES["MatMul"], "uint8", 127)
    _, notes = run(model, feed, load_config='{"CPU": {"LP_TRANSFORMS_MODE": "YES"}}')
    assert not any("float32" in note for note in notes)


@pytest.mark.parametrize("between", ["Relu (d)", "Mul (d, s)", "Identity (d)", "MaxPool"])
def test_a_concat_that_is_quantised_twice_compiles(between: str) -> None:
    """In a process of its own it would end with SIGSEGV, and here end the tests."""
    if between == "MaxPool":
        between = "Unsqueeze (d, ends) m = MaxPool <kernel_shape = [1, 1]> (e)"
    body = (
        f"c = Concat <axis = 1> (a, a) p = QuantizeLinear (c, s2, z)"
        f" d = DequantizeLinear (p, s2, z) e = {between} r = QuantizeLinear (e, s, z)"
        f" y = DequantizeLinear (r, s, z)"
    )
    model, feed = quantised_model(body, "int8", 64)
    result, notes = run(model, feed)
    assert not any("computed in float32" in note for note in notes)
    (expected,) = ReferenceEvaluator(model).run(None, feed)
    np.testing.assert_allclose(result, expected, atol=0.021)  # a step: quotients at a half


def test_sizes_that_are_joined_do_not_stop_8_bit_kernels() -> None:
    body = (
        "h = Shape <start = 0, end = 1> (x) c = Concat <axis = 0> (h, ones) e = Reshape (a, c)"
        " r = QuantizeLinear (e, s, z) y = DequantizeLinear (r, s, z)"
    )
    model, feed = quantised_model(body, "int8", 64)
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "ones"))
    result, notes = run(model, feed)
    assert not any("Concat" in note for note in notes)
    np.testing.assert_allclose(
        result, ReferenceEvaluator(model).run(None, feed)[0], atol=0.021
    )  # a step


def test_a_normalisation_keeps_its_epsilon_in_a_quantised_model() -> None:
    body = (
        "h = Mul (x, ws) y = LayerNormalization <epsilon = 0.001> (h, n)"
        " p = QuantizeLinear (y, s, z) last = DequantizeLinear (p, s, z)"
    )
    model, feed = quantised_model(body, "int8", 64)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(DEPTH, np.float32), "n"))
    model.graph.output.add().name = "last"
    result, _ = run(model, feed)
    np.testing.assert_allclose(
        result, ReferenceEvaluator(model).run(None, feed)[0], rtol=1e-4, atol=1e-5
    )


def test_a_pad_of_a_quantised_value_adds_its_constant() -> None:
    body = "g = Gather <axis = 0> (a, places) y = Pad (g, sizes, wide)"
    model, feed = quantised_model(body, "uint8", 64)
    for name, value in (
        ("places", np.array([0, 2])),
        ("sizes", np.array([0, 0, 1, 1])),
        ("wide", np.array(9.5, np.float32)),
    ):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    result, _ = run(model, feed)
    np.testing.assert_array_equal(result, ReferenceEvaluator(model).run(None, feed)[0])


ONCE = "e = QuantizeLinear (k, s, z)"
TWICE = "l = DequantizeLinear (bytes, s2, wz) e = QuantizeLinear (l, s, z)"


@pytest.mark.parametrize("device", ["CPU", "HETERO:CPU"])
@pytest.mark.parametrize("batch", ["1", "n"])
@pytest.mark.parametrize(("constant", "fails"), [(ONCE, False), (TWICE, True)])
def test_factors_that_are_quantised_constants_compile(
    constant: str, *, fails: bool, batch: str, device: str
) -> None:
    """OpenVINO's MultiplyPartialTransformation fails where it folds a constant's steps itself."""
    if device != "CPU" and sys.platform == "win32":
        pytest.skip("groups load slowly under Wine")
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[{batch}, 3, 8, 4] x) => (float[{batch}, 5, 8, 4] y)
        <float s = {{0.0205}}, uint8 z = {{120}}, float ws = {{0.01}}, int8 wz = {{0}},
         float s2 = {{0.03}}, int8[5, 1, 1] bytes = {{-30, -10, 10, 30, 50}},
         float[5, 1, 1] k = {{0.1, 0.9, 0.3, 0.7, 1.2}}> {{
        {QUANTISED} b = DequantizeLinear (w, ws, wz) c = Conv (a, b)
        d = QuantizeLinear (c, s, z) g = DequantizeLinear (d, s, z) {constant}
        f = DequantizeLinear (e, s, z) h = Mul (f, g)
        i = QuantizeLinear (h, s, z) y = DequantizeLinear (i, s, z) }}"""
    )
    random = np.random.default_rng(0)
    weights = random.integers(-64, 65, (5, 3, 1, 1)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    feed = {"x": random.normal(0, 1, (1, 3, 8, 4)).astype(np.float32)}
    result, notes = run(model, feed, device_type=device)
    failed = any("8-bit transformations fail: [MultiplyPartial" in note for note in notes)
    assert failed == fails, notes
    steps = np.abs(result - ReferenceEvaluator(model).run(None, feed)[0]) / 0.0205
    assert steps.max() < 2.5
    assert np.count_nonzero(steps > 0.5) <= 0.02 * steps.size


def test_what_no_kernel_takes_is_compiled_without_8_bit_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Mamba, with a scale for each row behind a product: a kernel wants one for each column."""
    original = ov.Core.compile_model

    def compile_model(core: Any, model: Any, device: str, config: dict[str, object]) -> Any:
        if config and MODE not in config:
            raise RuntimeError(
                "Check 'any_of(scale.size(), OC, 1U)' failed at"
                " src/plugins/intel_cpu/src/dnnl_postops_composer.cpp:526"
            )
        return original(core, model, device, config)

    monkeypatch.setattr(ov.Core, "compile_model", compile_model)
    model, feed = quantised_model(BODIES["MatMul"], "uint8", 64)
    result, notes = run(model, feed)
    assert any("8-bit transformations fail: Check 'any_of" in note for note in notes), notes
    (expected,) = ReferenceEvaluator(model).run(None, feed)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.skipif(sys.platform == "win32", reason="groups load slowly under Wine")
@pytest.mark.parametrize("device", ["AUTO:CPU", "HETERO:CPU"])
def test_groups_of_devices_compute_the_same_sums(device: str) -> None:
    model, feed = quantised_model(BODIES["MatMul"], "uint8", 127)
    result, _ = run(model, feed, device_type=device)
    (expected,) = ReferenceEvaluator(model).run(None, feed)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
