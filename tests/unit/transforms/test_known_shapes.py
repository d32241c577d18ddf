"""Shapes inside a graph: constants where they are certain, asked at run time where they are not."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from unit.transforms.transformed import ALL, agrees, floats, parsed, run

import ort_lite as ort
from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType, TensorType, ValueInfo
from ort_lite.model import loader
from ort_lite.planning.optimization import optimize_model, settings_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Model

RULE = "ShapeToInitializer"
IMAGE = {"x": floats(1, 3, 8, 8)}
WEIGHTS = ", ".join(["0.5"] * (4 * 3 * 3 * 3))
INSIDE = (
    f"g (float[1, 3, 8, 8] x) => (int64[4] z) <float[4, 3, 3, 3] w = {{{WEIGHTS}}}> "
    "{ a = Conv(x, w) b = Relu(a) s = Shape(b) o = Neg(s) z = Neg(o) }"
)


def test_the_shape_of_a_value_inside_is_known_before_it_runs() -> None:
    ran = agrees(parsed(INSIDE), IMAGE)
    assert ran.outputs[0].tolist() == [1, 4, 6, 6]
    assert ran.fired[RULE] == 1
    assert "Conv" not in ran.left  # nothing but its shape was used


def test_of_a_part_of_a_shape_the_part_is_kept() -> None:
    ran = agrees(parsed(INSIDE.replace("Shape(b)", "Shape <start = 1, end = -1> (b)")), IMAGE)
    assert ran.outputs[0].tolist() == [4, 6]
    assert ran.fired[RULE] == 1


SOMEWHERE = """g (float[2, 3] x, bool[2] flags, bool c) => (int64[2] z) {
  d = BODY
  s = Shape(d) o = Neg(s) z = Neg(o)
}"""
FEED = {"x": floats(2, 3), "flags": np.array([True, False]), "c": np.array(1, np.bool_)}
BRANCHES = (
    "If(c) <then_branch = t () => (float[7, 9] p) { p = Compress <axis = 0> (x, flags) }, "
    "else_branch = e () => (float[7, 9] q) { q = Identity(x) }>"
)


@pytest.mark.parametrize(
    ("body", "found"),
    [("Compress <axis = 0> (x, flags)", [1, 3]), (BRANCHES, [1, 3])],
    ids=["value", "output_of_a_body"],
)
def test_what_the_file_says_of_a_value_inside_does_not_count(body: str, found: list[int]) -> None:
    model = onnx.load_model_from_string(parsed(SOMEWHERE.replace("BODY", body)))
    said = onnx.helper.make_tensor_value_info("d", onnx.TensorProto.FLOAT, [7, 9])
    model.graph.value_info.append(said)
    ran = run(model.SerializeToString(), FEED)
    assert ran.outputs[0].tolist() == found
    assert RULE not in ran.fired


def test_what_the_file_says_of_an_output_that_is_read_inside_does_not_count() -> None:
    text = """g (float[2, 3] x, bool[2] flags) => (float[7, 9] d, int64[2] z) {
      d = Compress <axis = 0> (x, flags)
      e = Neg(d) s = Shape(e) o = Neg(s) z = Neg(o)
    }"""
    ran = run(parsed(text), {"x": FEED["x"], "flags": FEED["flags"]})
    assert ran.outputs[1].tolist() == [1, 3]
    assert RULE not in ran.fired


def test_types_are_inferred_once_whatever_the_file_says_of_values_inside() -> None:
    said = {"b": ValueInfo("b", TensorType(DataType.FLOAT, (1, 4, 6, 6)))}
    with closing(loader.load(parsed(INSIDE), ort.SessionOptions())) as loaded:
        settings = replace(settings_of(ort.SessionOptions(), (), ALL), infer=_asked)
        for infos in ({}, said):
            model = replace(loaded.model, graph=replace(loaded.model.graph, value_info=infos))
            _, done = optimize_model(model, {}, settings)
            assert done.fired[RULE] == 1


def test_behind_a_pool_whose_shape_onnx_infers_wrong_they_are_inferred_again() -> None:
    """There a declared shape may have had a part in the first inference."""
    pool = "MaxPool <kernel_shape = [2, 2], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1>"
    with closing(loader.load(parsed(INSIDE.replace("Relu", pool)), ort.SessionOptions())) as loaded:
        settings = replace(settings_of(ort.SessionOptions(), (), ALL), infer=_asked)
        with pytest.raises(AskedError):
            optimize_model(loaded.model, {}, settings)


class AskedError(Exception):
    """Somebody wants types inferred."""


def _asked(model: Model) -> Model:
    raise AskedError(model.graph.name)


def test_a_captured_value_s_shape_is_certain_in_a_body_too() -> None:
    text = """g (float[2, 3] x, bool c) => (int64[2] z) {
      a = Neg(x)
      z = If(c) <then_branch = t () => (int64[2] p) { s = Shape(a) p = Neg(s) },
                 else_branch = e () => (int64[2] q) { r = Neg(a) s = Shape(r) q = Neg(s) }>
    }"""
    ran = run(parsed(text), {"x": floats(2, 3), "c": np.array(1, np.bool_)})
    assert ran.outputs[0].tolist() == [-2, -3]
    assert ran.fired[RULE] == 1  # of `a`; what the body computes is left to the run


def test_an_input_with_free_dimensions_makes_nothing_certain() -> None:
    text = "g (float[n, 3] x) => (int64[2] z) { a = Neg(x) s = Shape(a) o = Neg(s) z = Neg(o) }"
    assert RULE not in run(parsed(text), {"x": floats(5, 3)}).fired


def test_a_free_dimension_that_is_fixed_makes_shapes_certain() -> None:
    text = "g (float[n, 3] x) => (int64[2] z) { a = Neg(x) s = Shape(a) o = Neg(s) z = Neg(o) }"
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 5)
    providers = ["CPUExecutionProvider"]
    with ort.InferenceSession(parsed(text), options, providers=providers) as session:
        assert session.explain().transforms[RULE] == 1
        assert session.run(None, {"x": floats(5, 3)})[0].tolist() == [5, 3]
