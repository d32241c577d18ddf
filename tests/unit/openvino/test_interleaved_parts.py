"""Interleaved parts of rows are put together by one Gather on OpenVINO, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
RNG = np.random.default_rng(51)
LIMIT = np.iinfo(np.int64).max


class Drawing:
    """Nodes over `t`, a function of the input."""

    def __init__(self) -> None:
        self.nodes: list[Any] = [helper.make_node("Abs", ["x"], ["t"])]
        self.constants: list[Any] = []

    def add(self, op_type: str, *inputs: str | list[int] | int, **attributes: Any) -> str:
        names = []
        for value in inputs:
            if isinstance(value, str):
                names.append(value)
                continue
            names.append(f"c{len(self.constants)}")
            self.constants.append(numpy_helper.from_array(np.array(value, np.int64), names[-1]))
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, names, [output], **attributes))
        return output

    def part(
        self, start: int, step: int, *, sign: int = 1, axis: int = -1, end: int = LIMIT
    ) -> str:
        part = self.add("Slice", "t", [start], [end], [axis], [step])
        return self.finish_part(part, sign)

    def finish_part(self, part: str, sign: int) -> str:
        if sign < 0:
            part = self.add("Neg", part)
        return self.add("Unsqueeze", part, [-1])

    def element(self, index: int, *, sign: int = 1) -> str:
        return self.finish_part(self.add("Gather", "t", index, axis=-1), sign)

    def model(self, result: str, shape: tuple[int | str, ...], kind: int, opset: int = 17) -> bytes:
        outputs = [helper.make_node("Identity", [result], ["y"])]
        x = helper.make_tensor_value_info("x", kind, shape)
        y = helper.make_tensor_value_info("y", kind, None)
        graph = helper.make_graph([*self.nodes, *outputs], "g", [x], [y], self.constants)
        opsets = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def check(
    drawing: Drawing,
    parts: list[str],
    *shapes: tuple[int, ...],
    is_gather: bool = True,
    free: tuple[int | str, ...] | None = None,
    axis: int = -1,
    dtype: type[Any] = np.float32,
    opset: int = 17,
) -> None:
    """Compare the Concat of `parts` with onnxruntime's for feeds of `shapes`."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    data = drawing.model(drawing.add("Concat", *parts, axis=axis), free or shapes[0], kind, opset)
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        session.disable_fallback()
        (partition,) = session.explain().partitions
        assert partition.ep == OPENVINO
        assert ("written out as Gather" in str(session.explain())) is is_gather
        for shape in shapes:
            x = RNG.standard_normal(shape).astype(dtype)
            (right,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
            (result,) = session.run(None, {"x": x})
            np.testing.assert_array_equal(result, right, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_rotation_of_interleaved_halves(dtype: type[Any]) -> None:
    drawing = Drawing()
    parts = [drawing.part(1, 2, sign=-1), drawing.part(0, 2)]
    check(drawing, parts, (2, 3, 5, 8), dtype=dtype)


@pytest.mark.parametrize("axis", [3, -1])
def test_free_dimensions_before_the_rows(axis: int) -> None:
    drawing = Drawing()
    parts = [drawing.part(1, 2, sign=-1, axis=2), drawing.part(0, 2, axis=2)]
    check(drawing, parts, (2, 5, 8), (1, 7, 8), (3, 0, 8), free=("b", "s", 8), axis=axis)


def test_both_signs_and_any_order_of_three() -> None:
    drawing = Drawing()
    parts = [drawing.part(2, 3, sign=-1), drawing.part(0, 3), drawing.part(2, 3)]
    check(drawing, parts, (4, 12))


def test_a_sign_behind_the_new_axis() -> None:
    drawing = Drawing()
    check(drawing, [drawing.add("Neg", drawing.part(1, 2)), drawing.part(0, 2)], (3, 8))


@pytest.mark.parametrize(("opset", "is_gather"), [(11, True), (9, False)])
def test_opsets_whose_axes_are_attributes(opset: int, *, is_gather: bool) -> None:
    """Before opset 10, Slice has no steps: elements of pairs alone could be gathered."""
    drawing = Drawing()
    parts = []
    for index, sign in ((1, -1), (0, 1)):
        part = drawing.add("Gather", "t", index, axis=2)
        part = drawing.add("Neg", part) if sign < 0 else part
        parts.append(drawing.add("Unsqueeze", part, axes=[2]))
    check(drawing, parts, (3, 4, 2), opset=opset, axis=2, is_gather=is_gather)


def test_one_row() -> None:
    drawing = Drawing()
    check(drawing, [drawing.part(1, 2), drawing.part(0, 2)], (6,))


@pytest.mark.parametrize("indices", [(1, 0), (-1, 0), (0, -2)])
def test_elements_of_pairs(indices: tuple[int, int]) -> None:
    drawing = Drawing()
    parts = [drawing.element(indices[0], sign=-1), drawing.element(indices[1])]
    check(drawing, parts, (2, 3, 4, 2), (1, 5, 4, 2), free=("b", "s", 4, 2))


def test_parts_that_others_read_as_well() -> None:
    drawing = Drawing()
    parts = [drawing.part(1, 2, sign=-1), drawing.part(0, 2)]
    stacked = drawing.add("Concat", *parts, axis=-1)
    twice = drawing.add("Add", stacked, parts[0])
    data = drawing.model(twice, (3, 8), TensorProto.FLOAT)
    x = RNG.standard_normal((3, 8), dtype=np.float32)
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        session.disable_fallback()
        assert "written out as Gather" in str(session.explain())
        (right,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], right)


def other_steps(drawing: Drawing) -> list[str]:
    return [drawing.part(0, 2), drawing.part(0, 2), drawing.part(1, 2), drawing.part(1, 2)]


def a_shorter_end(drawing: Drawing) -> list[str]:
    return [drawing.part(1, 2, end=6), drawing.part(0, 2, end=6)]


def another_axis(drawing: Drawing) -> list[str]:
    return [drawing.part(1, 2, axis=0), drawing.part(0, 2, axis=0)]


def two_tensors(drawing: Drawing) -> list[str]:
    other = drawing.add("Add", "t", "t")
    part = drawing.add("Slice", other, [0], [LIMIT], [-1], [2])
    return [drawing.part(1, 2), drawing.finish_part(part, 1)]


def later_starts(drawing: Drawing) -> list[str]:
    return [drawing.part(2, 2), drawing.part(3, 2)]


def from_the_end(drawing: Drawing) -> list[str]:
    return [drawing.part(-2, -2, end=-LIMIT), drawing.part(-1, -2, end=-LIMIT)]


@pytest.mark.parametrize(
    "parts", [other_steps, a_shorter_end, another_axis, two_tensors, later_starts, from_the_end]
)
def test_what_is_no_order_of_whole_rows_stays(parts: Any) -> None:
    drawing = Drawing()
    check(drawing, parts(drawing), (8, 8), is_gather=False)


def test_rows_that_are_no_multiple_stay() -> None:
    drawing = Drawing()
    check(drawing, [drawing.part(0, 2, sign=-1), drawing.part(0, 2)], (3, 7), is_gather=False)


def test_one_group_without_rows_stays() -> None:
    drawing = Drawing()
    check(drawing, [drawing.element(1), drawing.element(0)], (2,), is_gather=False)


def test_very_long_rows_stay() -> None:
    drawing = Drawing()
    parts = [drawing.part(1, 2, sign=-1), drawing.part(0, 2)]
    check(drawing, parts, (2, 1 << 13), is_gather=False)


def test_rows_of_free_length_stay() -> None:
    drawing = Drawing()
    parts = [drawing.part(1, 2), drawing.part(0, 2)]
    check(drawing, parts, (3, 8), (3, 6), free=(3, "d"), is_gather=False)


def test_a_concat_along_another_axis_stays() -> None:
    drawing = Drawing()
    check(drawing, [drawing.part(1, 2), drawing.part(0, 2)], (3, 8), axis=0, is_gather=False)


def test_columns_taken_from_groups_of_another_size_stay() -> None:
    drawing = Drawing()
    check(drawing, [drawing.element(1), drawing.element(0)], (3, 4, 3), is_gather=False)
