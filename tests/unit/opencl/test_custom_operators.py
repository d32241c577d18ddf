"""Operators of the user's own, against the same operators as functions in onnx.reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from opencl_devices import device_names

import ort_lite as ort
from eps.opencl.custom.declarations import parse_custom_kernels
from eps.opencl.custom.formulas import ShapeMismatch, compute_size

if TYPE_CHECKING:
    from pathlib import Path

OPENCL = "OpenCLExecutionProvider"
DEVICES = device_names()
KERNELS = """
#pragma ort_lite operator com.acme.Gate <beta: float = 1.0> (float[N, C] x, float[C] s) \\
    => (float[N, C] y, bool[N, C] open)
void gate(int item, __global const float* x, __global const float* s, __global float* y,
          __global uchar* open, int N, int C, float beta) {
  const float v = x[item] * s[item % C];
  y[item] = v / (1.0f + exp(-beta * v));
  open[item] = v > 0.0f;
}

#pragma ort_lite operator com.acme.PairSums <by: int> (float[*S, L] x) => (float[*S, L / 2] y)
#pragma ort_lite items S
void pair_sums(int item, __global const float* x, __global float* y, int S, int L, int by) {
  for (int i = 0; i < L / 2; ++i)
    y[item * (L / 2) + i] = (x[item * L + 2 * i] + x[item * L + 2 * i + 1]) * by;
}
"""
GRAPH = """
main (float[N, 8] x, float[8] s) => (float[4, N] y, bool[N, 8] open, float[N, 16] both) {
  a = Relu (x)
  t = Neg (a)
  g, open = com.acme.Gate <beta = 1.5> (t, s)
  p = com.acme.PairSums <by = 3> (g)
  y = Transpose <perm = [1, 0]> (p)
  both = Concat <axis = 1> (g, t)
}
"""
FUNCTIONS = """
<domain: "com.acme", opset_import: ["": 21]>
Gate <beta: float = 1.0> (x, s) => (y, open) {
  v = Mul (x, s)
  b = Constant <value_float: float = @beta> ()
  w = Mul (v, b)
  k = Sigmoid (w)
  y = Mul (v, k)
  zero = Constant <value = float {0.0}> ()
  open = Greater (v, zero)
}
<domain: "com.acme", opset_import: ["": 21]>
PairSums <by: int = 1> (x) => (y) {
  shape = Constant <value = int64[3] {0, -1, 2}> ()
  pairs = Reshape (x, shape)
  axis = Constant <value = int64[1] {2}> ()
  sums = ReduceSum <keepdims = 0> (pairs, axis)
  n = Constant <value_int: int = @by> ()
  f = Cast <to = 1> (n)
  y = Mul (sums, f)
}
"""
HEAD = '<ir_version: 10, opset_import: ["": 21, "com.acme": 1]>'


def plain() -> bytes:
    """The graph, whose operators nothing but a declaration explains."""
    return parser.parse_model(f"{HEAD}{GRAPH}").SerializeToString()


def expected(feed: dict[str, np.ndarray[Any, Any]]) -> list[Any]:
    """What the reference gives, to which the operators are functions."""
    proto = parser.parse_model(f"{HEAD}{GRAPH}{FUNCTIONS}")
    return list(ReferenceEvaluator(proto).run(None, feed))


def feed_of(rows: int) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(rows)
    x, s = random.standard_normal((rows, 8)), random.standard_normal(8)
    return {"x": x.astype(np.float32), "s": s.astype(np.float32)}


def close(got: list[Any], wanted: list[Any]) -> None:
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_nodes_of_declared_operators_run_among_others(device: str) -> None:
    options = {"device": device, "custom_kernels": KERNELS}
    session = ort.InferenceSession(plain(), providers=[(OPENCL, options)])
    for rows in (5, 3000):
        close(session.run(None, feed_of(rows)), expected(feed_of(rows)))


@pytest.mark.parametrize("device", DEVICES)
def test_a_context_has_them_for_shapes_that_it_has_not_met_too(tmp_path: Path, device: str) -> None:
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(tmp_path / "m_ctx.onnx"))
    options = {"device": device, "custom_kernels": KERNELS, "reshape_input": "x[6,8];s[8]"}
    ort.InferenceSession(plain(), config, providers=[(OPENCL, options)]).close()
    session = ort.InferenceSession(
        tmp_path / "m_ctx.onnx", providers=[(OPENCL, {"device": device})]
    )
    for rows in (6, 2):
        close(session.run(None, feed_of(rows)), expected(feed_of(rows)))


def test_the_model_cache_compiles_again_for_another_text(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(plain())
    config = ort.SessionOptions()
    config.add_session_config_entry("session.ep_context_cache", "1")
    config.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))

    def first_output(text: str) -> Any:
        session = ort.InferenceSession(path, config, providers=[(OPENCL, {"custom_kernels": text})])
        return session.run(["y"], feed_of(4))[0]

    right = first_output(KERNELS)
    np.testing.assert_array_equal(first_output(KERNELS), right)
    assert len(list((tmp_path / "cache" / "v1" / "entries").iterdir())) == 1
    doubled = first_output(KERNELS.replace(") * by;", ") * by * 2;"))
    np.testing.assert_array_equal(doubled, right * 2)
    assert len(list((tmp_path / "cache" / "v1" / "entries").iterdir())) == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("float[C] s", "float[C, N] s"), r"\[8\] does not have the rank of s\[C, N\]"),
        (("float[C] s", "float[N] s"), r"\[8\] does not fit s\[N\]: N is"),
        (("float[C] s", "double[C] s"), "s is float32, and declared float64"),
        (("beta", "gamma"), "attribute 'beta', which is not declared"),
        (("L / 2]", "L / (L - 8)]"), r"'L / \(L - 8\)' divides by 0"),
        (("L / 2]", "L - 9]"), "'L - 9' is -1"),
        (("items S", "items S - S"), "0 items"),
        (("<by: int>", "<by: int, to: int>"), "attribute 'to' is missing, and has no default"),
        (("<by: int>", "<by: float>"), "attribute 'by' is 3, not a float"),
    ],
)
def test_a_node_that_is_not_as_declared_is_refused_with_the_reason(
    change: tuple[str, str], reason: str
) -> None:
    options = {"custom_kernels": KERNELS.replace(*change)}
    with pytest.raises(ort.status.NotImplemented, match=reason):
        ort.InferenceSession(plain(), providers=[(OPENCL, options), "CPUExecutionProvider"])


FORM = "#pragma ort_lite operator com.acme.A <%s> (%s) => (%s)\nvoid f(int item) {}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernels.cl", "declares no operator.*not the name of a file"),
        (
            "#pragma ort_lite operator A (float[N] x) => (float[N] y)\nvoid f() {}",
            "without a domain",
        ),
        ("#pragma ort_lite operator com.A (float[N] x)\nvoid f() {}", "not a declaration"),
        ("#pragma ort_lite operator com.A (float[N] x) => (float[N] y)", "no function behind it"),
        ("#pragma ort_lite items N", "no operator before it"),
        (FORM % ("", "", "float[1] y"), "no input or no output"),
        (FORM % ("", "half[N] x", "float[N] y"), "element type 'half'"),
        (FORM % ("", "float x", "float[N] y"), "'float x'"),
        (FORM % ("", "float[N + 1] x", "float[N] y"), "as a dimension of an input"),
        (FORM % ("", "float[*A, *B] x", "float[N] y"), "two '\\*' dimensions"),
        (FORM % ("", "float[N] x", "float[M] y"), "'M' in 'M'.*one of \\['N'\\]"),
        (FORM % ("", "float[N] x", "float[*M] y"), "'\\*M' of an output"),
        (FORM % ("", "float[N] x", "float[N ** 9] y"), "'N \\*\\* 9'"),
        (FORM % ("", "float[N] x", "float[f(N)] y"), "'f\\(N\\)'"),
        (FORM % ("", "float[N] x", f"float[{'N+' * 150}N] y"), "names, whole numbers"),
        (FORM % ("", "float[x] x", "float[1] y"), "the name 'x' twice"),
        (FORM % ("a: string", "float[N] x", "float[N] y"), "'a: string'"),
        (FORM % ("a: int = 1.5", "float[N] x", "float[N] y"), "'1.5' as a default of a"),
        ((FORM % ("", "float[N] x", "float[N] y") + "\n") * 2, "a second time"),
        (FORM % ("", "float[N] x", "float[N] y") + "\0", "NUL"),
        (" " * (1 << 20) + FORM, "at most 1048576"),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ort.status.InvalidArgument, match=message):
        parse_custom_kernels(text)


def test_a_declared_operator_of_onnx_replaces_its_kernel() -> None:
    text = """
    #pragma ort_lite operator ai.onnx.Abs (float[*S] x) => (float[*S] y)
    void magnitude(int item, __global const float* x, __global float* y, int S) {
      y[item] = fabs(x[item]) + 1.0f;
    }
    """
    proto = parser.parse_model(f"{HEAD}main (float[3] x) => (float[3] y) {{ y = Abs (x) }}")
    session = ort.InferenceSession(
        proto.SerializeToString(), providers=[(OPENCL, {"custom_kernels": text})]
    )
    (y,) = session.run(None, {"x": np.array([-2, 0, 3], np.float32)})
    assert y.tolist() == [3, 1, 4]


def test_a_mistake_in_a_function_is_the_driver_s_error_at_the_user_s_line() -> None:
    options = {"custom_kernels": KERNELS.replace("exp(", "expp(")}
    session = ort.InferenceSession(plain(), providers=[(OPENCL, options)])
    with pytest.raises(ort.status.EPFail, match="expp"):
        session.run(None, feed_of(2))


@pytest.mark.parametrize(("formula", "size"), [("7 / 2", 3), ("(N + 1) * 2 % 5", 3), ("N - 3", 0)])
def test_formulas_are_those_of_whole_numbers(formula: str, size: int) -> None:
    assert compute_size(formula, {"N": 3}) == size
    with pytest.raises(ShapeMismatch):
        compute_size(f"{formula} - 9", {"N": 3})


def test_onnx_checks_the_functions_that_the_truth_comes_from() -> None:
    onnx.checker.check_model(parser.parse_model(f"{HEAD}{GRAPH}{FUNCTIONS}"))
