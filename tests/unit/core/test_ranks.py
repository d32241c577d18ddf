"""Tensors of more dimensions than execution providers compile run on the CPU EP."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort

CPU = "CPUExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
OPENCL = pytest.param(
    "OpenCLExecutionProvider",
    marks=pytest.mark.skipif(not find_spec("pyopencl"), reason="pyopencl is missing"),
)
Array = np.ndarray[Any, Any]
X = {"x": np.arange(16, dtype=np.float32).reshape(2, 8) / 8}


def reshaped(rank: int) -> bytes:
    """Work on two tensors of `rank` dimensions, of which one repeats the other's rows."""
    ones = ", ".join(["1"] * (rank - 2))
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[n, 8] x) => (float[n, 8] y)
        <int64[{rank}] shape = {{0, -1, {ones}}}, int64[{rank}] column = {{8, 1, {ones}}},
        float[8] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{
        r = Reshape(x, shape) v = Reshape(w, column) t = Transpose <perm = [1, 0, {
        ", ".join(map(str, range(2, rank)))
    }]> (r)
        s = Add(t, v) e = Exp(s) f = Flatten <axis = 1> (e) y = Transpose(f)
    }}"""
    return onnx.parser.parse_model(text).SerializeToString()


def right(rank: int) -> Array:
    (answer,) = onnxruntime.InferenceSession(reshaped(rank), providers=[CPU]).run(None, X)
    return np.asarray(answer)


@pytest.mark.parametrize("rank", [5, 32])
@pytest.mark.parametrize("ep", [OPENVINO, OPENCL])
def test_32_dimensions_are_compiled(ep: str, rank: int) -> None:
    with ort.InferenceSession(reshaped(rank), providers=[ep]) as session:
        np.testing.assert_allclose(session.run(None, X)[0], right(rank), rtol=1e-6)
        assert set(session.explain().node_counts()) == {ep}


@pytest.mark.parametrize("rank", [33, 64])
@pytest.mark.parametrize("ep", [OPENVINO, OPENCL])
def test_more_run_on_the_cpu_ep(ep: str, rank: int) -> None:
    with ort.InferenceSession(reshaped(rank), providers=[ep]) as session:
        np.testing.assert_allclose(session.run(None, X)[0], right(rank), rtol=1e-6)
        assert set(session.explain().node_counts()) == {CPU}
        assert f"has {rank} dimensions, of at most 32" in str(session.explain())


def test_the_sizes_of_a_shape_count_where_no_type_is_inferred() -> None:
    """OpenVINO would compile for minutes; the CPU EP says what it was asked for."""
    rank = 100_000
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (y)
        <int64[1] one = {{1}}> {{
        shape = Concat <axis = 0> ({", ".join(["one"] * rank)}) r = Reshape(x, shape)
        e = Exp(r) y = Reshape(e, one)
    }}"""
    data = onnx.parser.parse_model(text).SerializeToString()
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        assert f"'r' has {rank} dimensions, of at most 32" in str(session.explain())
        with pytest.raises(ort.RuntimeException, match="cannot be reshaped"):
            session.run(None, {"x": np.ones(1, np.float32)})
