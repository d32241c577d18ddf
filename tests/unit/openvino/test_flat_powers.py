"""Powers of short rows have onnxruntime's numbers on OpenVINO, as one row."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort
from eps.openvino.compile.flat_powers import flatten_powers
from ort_lite.model import loader

OPENVINO = "OpenVINOExecutionProvider"


def scaled(exponent: float, shape: str = "1, 40, 1, 1", wide: str = "1, 40, 1, 2") -> bytes:
    """Parts of complex numbers times a power of their sizes."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{shape}] x, float[{wide}] z) => (float[{wide}] y) <float e = {{{exponent}}}>
    {{ a = Abs(x) p = Pow(a, e) y = Mul(p, z) }}"""
    return onnx.parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize("exponent", [-0.7, 0.3, 7 / 3, -1.0, 0.5, 2.0, 3.0])
@pytest.mark.parametrize("shape", [(1, 40, 1, 1), (2, 20, 1, 1), (5, 8, 3, 1)])
def test_the_numbers_are_onnxruntimes(shape: tuple[int, ...], exponent: float) -> None:
    chance = np.random.default_rng(2)
    model = scaled(exponent, ", ".join(map(str, shape)), ", ".join(map(str, (*shape[:-1], 2))))
    feed = {
        "x": chance.standard_normal(shape, np.float32),
        "z": chance.standard_normal((*shape[:-1], 2), np.float32),
    }
    feed["x"].flat[0] = 0
    (expected,) = onnxruntime.InferenceSession(model).run(None, feed)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as mine:
        mine.disable_fallback()
        (output,) = mine.run(None, feed)
    np.testing.assert_allclose(output, expected, rtol=2e-6)


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (scaled(-0.7), 2),
        (scaled(0.3), 2),
        (scaled(2.0), 0),
        (scaled(-0.7, "1, 40", "1, 40"), 0),
        (scaled(-0.7, "n, 40, 1, 1", "n, 40, 1, 2"), 0),
        (scaled(-0.7, "1, 4, 1, 1", "1, 4, 1, 2"), 0),
        (scaled(-0.7, "4, 40, 0, 1", "4, 40, 0, 2"), 0),
        (scaled(-0.7, "4, 40, 0", "4, 40, 0"), 0),
    ],
    ids=["negative", "fraction", "square", "long-row", "free", "few", "empty", "empty-rows"],
)
def test_powers_of_short_rows_alone_are_flattened(model: bytes, count: int) -> None:
    with closing(loader.load(model, ort.SessionOptions())) as loaded:
        graph = loader.resolve(loaded.model, {})
        written = flatten_powers(graph.definition, graph)
    assert [node.op_type for node in written.nodes].count("Reshape") == count
    assert (written is graph.definition) == (not count)
