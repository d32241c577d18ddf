"""Random Loops on OpenVINO against onnxruntime: states, values from around, views and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = (2, 3, 4)
CASES = 40
RELOADED = 20
OPENVINO = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
Array = np.ndarray[Any, Any]


class RandomLoop:
    """A model of one Loop, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._free = bool(self._draw.integers(2))
        self._constants = [
            numpy_helper.from_array(np.array([6, 4]), "flat"),
            numpy_helper.from_array(np.array(SHAPE), "dims"),
            numpy_helper.from_array(np.array([1]), "one"),
            numpy_helper.from_array(np.array([1, 2]), "parts"),
            numpy_helper.from_array(self._floats(4, 4), "weights"),
            numpy_helper.from_array(self._floats(4), "scale"),
            numpy_helper.from_array(np.zeros((1, 3, 4), np.int64), "places"),
        ]
        self._names = 0

    def _floats(self, *shape: int) -> Array:
        return self._draw.standard_normal(shape).astype(np.float32)

    def _add(self, op: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        outputs = [f"v{self._names + i}" for i in range(count)]
        self._names += count
        self._nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs[0] if count == 1 else outputs

    def _step(self, values: list[str]) -> str:
        """One more value of SHAPE, computed from some of these."""
        pick = str(self._draw.choice(values))
        other = str(self._draw.choice(values))
        kind = int(self._draw.integers(10))
        axis = int(self._draw.integers(3))
        if kind == 0:
            return self._add(str(self._draw.choice(["Tanh", "Sigmoid", "Neg", "Erf"])), pick)
        if kind <= 2:
            return self._add(str(self._draw.choice(["Add", "Mul", "Sub", "Max"])), pick, other)
        if kind == 3:
            return self._add("Softmax", pick, axis=axis)
        if kind == 4:
            flat = self._add("Reshape", pick, "flat")
            operator = str(self._draw.choice(["Softmax", "Tanh", "Relu"]))
            return self._add("Reshape", self._add(operator, flat), "dims")
        if kind == 5:
            wide = self._add("Unsqueeze", pick, "one")
            return self._add("Squeeze", self._add("Add", wide, wide), "one")
        if kind == 6:
            first, second = self._add("Split", pick, "parts", count=2, axis=1)
            return self._add("Concat", self._add("Neg", second), first, axis=1)
        if kind == 7:
            return self._add("MatMul", pick, "weights")
        if kind == 8:
            updates, _ = self._add("Split", other, count=2, axis=0)
            reduction = str(self._draw.choice(["none", "add"]))
            return self._add(
                "ScatterElements", pick, "places", updates, axis=0, reduction=reduction
            )
        number = self._add("Cast", self._add("Reshape", "number", "one"), to=TensorProto.FLOAT)
        scaled = self._add("LayerNormalization", pick, "scale")
        return self._add("Add", scaled, number)

    def model(self) -> bytes:
        """States and collected values of three to six iterations."""
        draw = self._draw
        states = [f"s{i}" for i in range(int(draw.integers(1, 4)))]
        around = [f"x{i}" for i in range(int(draw.integers(1, 3)))]
        dims = ["a", "b", "c"] if self._free else SHAPE
        values = [*states, *around]
        for _ in range(int(draw.integers(3, 9))):
            values.append(self._step(values))
        results = [self._add("Tanh", str(draw.choice(values[1:]))) for _ in states]
        if draw.integers(3) == 0:
            results[-1] = self._add("Identity", str(draw.choice(values)))
        collected = [str(draw.choice(values[len(states) + len(around) :]))]

        def infos(names: list[str], shape: Any = dims) -> list[Any]:
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in names]

        last = helper.make_node("Identity", ["go"], ["on"])
        more = [helper.make_node("Identity", [name], [f"{name}/kept"]) for name in collected]
        body = helper.make_graph(
            [*self._nodes, last, *more],
            "body",
            [
                helper.make_tensor_value_info("number", TensorProto.INT64, []),
                helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                *infos(states),
            ],
            [
                helper.make_tensor_value_info("on", TensorProto.BOOL, []),
                *infos(results, SHAPE),
                *infos([f"{name}/kept" for name in collected], SHAPE),
            ],
        )
        firsts = [f"{name}/first" for name in states]
        outputs = [*(f"{name}/last" for name in states), *(f"{name}/all" for name in collected)]
        loop = helper.make_node("Loop", ["trips", "true", *firsts], outputs, body=body)
        limits = [
            helper.make_tensor("trips", TensorProto.INT64, [], [int(draw.integers(3, 7))]),
            helper.make_tensor("true", TensorProto.BOOL, [], [True]),
        ]
        graph = helper.make_graph(
            [loop],
            "loop",
            infos([*firsts, *around]),
            infos(outputs, None),
            [*self._constants, *limits],
        )
        opsets = [helper.make_opsetid("", 17)]
        made: bytes = helper.make_model(
            graph, opset_imports=opsets, ir_version=8
        ).SerializeToString()
        return made

    def feed(self, session: Any) -> dict[str, Array]:
        return {info.name: self._floats(*SHAPE) for info in session.get_inputs()}


def check(session: ort.InferenceSession, feed: dict[str, Array], expected: list[Array]) -> None:
    """Twice, for the memory of the first run must not show in the second."""
    for _ in range(2):
        for mine, theirs in zip(session.run(None, feed), expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-5)


def answer(drawn: RandomLoop, model: bytes) -> tuple[dict[str, Array], list[Array]]:
    """A feed, and what onnxruntime gives for it."""
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    feed = drawn.feed(reference)
    return feed, reference.run(None, feed)


def options_with(**entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for key, value in {"session.placement": "all", **entries}.items():
        options.add_session_config_entry(key, value)
    return options


@pytest.mark.parametrize("seed", range(CASES))
def test_random_loop(seed: int) -> None:
    drawn = RandomLoop(seed)
    model = drawn.model()
    feed, expected = answer(drawn, model)
    with ort.InferenceSession(model, options_with(), providers=OPENVINO) as session:
        check(session, feed, expected)


@pytest.mark.parametrize("seed", range(CASES, CASES + RELOADED))
def test_random_loop_out_of_a_context(seed: int, tmp_path: Path) -> None:
    drawn = RandomLoop(seed)
    model, context = drawn.model(), str(tmp_path / "m_ctx.onnx")
    feed, expected = answer(drawn, model)
    options = options_with(**{"ep.context_enable": "1", "ep.context_file_path": context})
    ort.InferenceSession(model, options, providers=OPENVINO).close()
    with ort.InferenceSession(context, providers=OPENVINO) as session:
        check(session, feed, expected)
