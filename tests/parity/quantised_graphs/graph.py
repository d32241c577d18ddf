"""A quantised graph that grows by random steps, in which every sum is exact in float32.

Scales are powers of two and values few multiples of them, so no engine may differ in a single bit,
whatever the order of its sums. Operators that round, such as Sigmoid, are quantised at once, and a
graph in which one of their results lies close to the middle between two steps is drawn anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from parity.random_graphs.graph import RandomGraph, Value, names_read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

CONTRIB = "com.microsoft"
OPSETS = (13, 17, 19, 21, 22, 23)
WIDE_TYPES = 21
"""Opset from which on QuantizeLinear has int16, int4 and blocks."""
LARGEST_MULTIPLE = 2**24
"""float32 holds each multiple of a step up to here."""
UNITS = (1.0, 1.0, 1.0, 2.0**-20, 2.0**-40)
"""What the numbers of a graph are multiples of: scales may be far from 1."""
LARGEST = 12_000
"""Elements of a value."""
SHAPES = (
    (1, 4, 8, 8), (2, 3, 6, 9), (1, 16, 4, 4), (1, 8, 5, 7), (1, 1, 8, 16),
    (2, 6, 12), (1, 5, 16), (4, 16), (1, 32), (3, 24),
)  # fmt: skip
RANGES = {
    "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535),
    "int4": (-8, 7), "uint4": (0, 15), "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip
MIDDLE = 5e-4
"""Part of a step; results that round and are as close to the middle between two are not drawn."""


@dataclass(frozen=True)
class Exact(Value):
    """A float32 tensor of multiples of a step.

    Attributes:
        step: A power of two.
        largest: Bound of the magnitudes.
        typical: Their usual size.
    """

    step: float
    largest: float
    typical: float

    @property
    def multiples(self) -> float:
        return self.largest / self.step


@dataclass(frozen=True)
class Quantised(Value):
    """A tensor of integers with one scale and zero point.

    Attributes:
        dtype: Its element type.
        scale: A power of two.
        zero: The zero point.
        scale_name: A float32 of the graph.
        zero_name: Of the graph, or "" where 0 is meant.
        typical: Usual size of what it stands for.
    """

    dtype: str
    scale: float
    zero: int
    scale_name: str
    zero_name: str
    typical: float

    @property
    def largest(self) -> float:
        """Bound of the magnitudes that it stands for."""
        low, high = RANGES[self.dtype]
        return max(high - self.zero, self.zero - low) * self.scale

    @property
    def is_byte(self) -> bool:
        return self.dtype in ("int8", "uint8")


Operand = Exact | Quantised
AnyValue = TypeVar("AnyValue", bound=Operand)
FLOAT_STEPS: list[Callable[[QuantisedGraph, Exact], object]] = []
BYTE_STEPS: list[Callable[[QuantisedGraph, Quantised], object]] = []


def on_floats(weight: int = 1) -> Callable[[Any], Any]:
    """Register a step for float32 values; it adds nothing where it does not fit."""

    def register(function: Any) -> Any:
        FLOAT_STEPS.extend([function] * weight)
        return function

    return register


def on_integers(weight: int = 1) -> Callable[[Any], Any]:
    """Register a step for quantised values; it adds nothing where it does not fit."""

    def register(function: Any) -> Any:
        BYTE_STEPS.extend([function] * weight)
        return function

    return register


class QuantisedGraph(RandomGraph):
    """Nodes, initializers and values so far, and what a check of rounding needs."""

    def __init__(self, random: np.random.Generator, *, even_zeros: bool) -> None:
        super().__init__(random, count())
        self.even_zeros = even_zeros
        self.opset = self.pick(*OPSETS)
        self.unit = self.pick(*UNITS)
        self.pool: list[Operand] = []
        self.leaves: list[str] = []
        self.rounded: list[tuple[str, float]] = []
        self.side_nodes: list[onnx.NodeProto] = []

    def power(self, low: int, high: int) -> float:
        """A power of two."""
        return 2.0 ** self.integer(low, high)

    def exact(
        self, op_type: str, *inputs: str | Value, like: Exact, shape: Sequence[int] | None = None,
        step: float | None = None, largest: float | None = None, typical: float | None = None,
        **attributes: Any,
    ) -> Exact | None:  # fmt: skip
        """Add a node whose result is exact; None, and no node, where it would not be."""
        value = Exact(
            "", like.shape if shape is None else tuple(shape), like.step if step is None else step,
            like.largest if largest is None else largest,
            like.typical if typical is None else typical,
        )  # fmt: skip
        if value.multiples > LARGEST_MULTIPLE or value.size > LARGEST or value.size < 1:
            return None
        value = replace(value, name=self.node(op_type, *inputs, **attributes))
        self.pool.append(value)
        return value

    def keep(self, value: AnyValue) -> AnyValue:
        self.pool.append(value)
        return value

    def quantise(
        self, value: Exact, dtype: str | None = None, *, scale: float | None = None
    ) -> Quantised:
        """QuantizeLinear with one scale for all elements, as often one of its vectors of one."""
        kinds = ["uint8", "int8", "uint8", "int8"]
        is_contrib = self.chance(0.1)
        if self.opset >= WIDE_TYPES or is_contrib:
            kinds += ["int16", "uint16"]
        dtype = dtype or self.pick(*kinds)
        is_contrib = is_contrib or ("16" in dtype and self.opset < WIDE_TYPES)
        low, high = RANGES[dtype]
        span = self.pick(high - low, (high - low) / 2)
        if "16" in dtype:  # so that sums of products still fit
            span = self.pick(600, 2000)
        wanted = scale or 2.0 ** round(np.log2(6 * value.typical / span))
        wanted = max(wanted, 2 * value.largest / LARGEST_MULTIPLE)
        zero, may_omit = self.zero_point(dtype)
        shape = self.pick((), (), (1,)) if not is_contrib else ()
        names = [self.constant(np.full(shape, wanted, np.float32))]
        zero_name = ""
        if not may_omit or self.chance(0.5):
            zero_name = self.constant(np.full(shape, zero), dtype)
        elif dtype == "uint8" and self.chance(0.5):
            pass
        inputs = [value, *names, *([zero_name] if zero_name else [])]
        attributes: dict[str, Any] = {"domain": CONTRIB} if is_contrib else {}
        if not zero_name and dtype != "uint8":
            if self.opset < WIDE_TYPES or is_contrib:
                zero_name = self.constant(np.full(shape, zero), dtype)
                inputs = [value, *names, zero_name]
            else:
                attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        name = self.node("QuantizeLinear", *inputs, **attributes)
        return self.keep(
            Quantised(name, value.shape, dtype, wanted, zero, names[0], zero_name, value.typical)
        )

    def zero_point(self, dtype: str) -> tuple[int, bool]:
        """A zero point, and whether it may be left out."""
        low, high = RANGES[dtype]
        zero = (low + high + 1) // 2
        if self.chance(0.25):
            return 0, True
        if self.chance(0.6):
            spread = (high - low) // 3
            zero = int(self.zeros(zero + self.integer(-spread, spread)))
        return zero, zero == 0

    def zeros(self, numbers: Any) -> Any:
        """Zero points, or the even ones before them."""
        return numbers - numbers % 2 if self.even_zeros else numbers

    def dequantise(self, value: Quantised) -> Exact:
        """DequantizeLinear back to float32."""
        inputs = [value.name, value.scale_name, *([value.zero_name] if value.zero_name else [])]
        attributes = {}
        if "16" in value.dtype and self.opset < WIDE_TYPES:
            attributes["domain"] = CONTRIB
        name = self.node("DequantizeLinear", *inputs, **attributes)
        return self.keep(Exact(name, value.shape, value.scale, value.largest, value.typical))

    def zero_of(self, value: Quantised) -> str:
        """The zero point's name, for operators that need one."""
        return value.zero_name or self.constant(np.zeros((), value.dtype), value.dtype)

    def parameters(self, typical: float, dtype: str) -> tuple[float, int, str, str]:
        """Scale and zero point of a result, with their names."""
        low, high = RANGES[dtype]
        span = self.pick(high - low, (high - low) / 2)
        scale = 2.0 ** round(np.log2(6 * typical / span))
        zero = self.zero_point(dtype)[0]
        return scale, zero, self.constant(np.float32(scale)), self.constant(zero, dtype)

    def round_result(self, name: str, scale: float) -> None:
        """Note that an inexact float value is quantised by a scale."""
        self.rounded.append((name, scale))

    def side(self, op_type: str, *inputs: str | Value, **attributes: Any) -> str:
        """A node that only the check of rounding runs; its output."""
        before = len(self.nodes)
        name: str = self.node(op_type, *inputs, **attributes)
        self.side_nodes += self.nodes[before:]
        del self.nodes[before:]
        return name

    def same_shape(self, value: Operand, kind: type) -> Any:
        """A value of that kind and shape, maybe itself."""
        return self.pick(
            *(v for v in self.pool if isinstance(v, kind) and v.shape == value.shape), value
        )

    def grow_steps(self, nodes: int) -> None:
        """Take random steps, mostly from late values, up to so many nodes."""
        for _ in range(20 * nodes):
            if len(self.nodes) >= nodes:
                break
            weights = np.arange(1, len(self.pool) + 1) ** 2.0
            value = self.pool[int(self.random.choice(len(self.pool), p=weights / weights.sum()))]
            if isinstance(value, Exact):
                self.pick(*FLOAT_STEPS)(self, value)
            else:
                self.pick(*BYTE_STEPS)(self, value)


def make_quantised_model(
    seed: int, *, even_zeros: bool = False
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model of a seed, and a feed. In a third of the models some dimensions are free.

    Args:
        seed: Of the random numbers.
        even_zeros: Whether zero points of activations are even, so that results in the middle
            between two steps are the same whether the zero point is added before rounding to the
            even step, as OpenVINO does, or after it.
    """
    attempt = 0
    while True:
        random = np.random.default_rng([seed, attempt])
        graph, model, feed = _draw(QuantisedGraph(random, even_zeros=even_zeros))
        if not _rounding_decides(graph, model, feed):
            return model, feed
        attempt += 1


def _draw(graph: QuantisedGraph) -> tuple[QuantisedGraph, onnx.ModelProto, dict[str, Array]]:
    feed, inputs = {}, []
    is_free = graph.chance(0.33)
    for index in range(graph.integer(1, 3)):
        name, shape = f"x{index}", graph.pick(*SHAPES)
        dtype = graph.pick("float32", "float32", "uint8", "int8")
        if dtype == "float32":
            steps = np.clip(np.rint(graph.random.standard_normal(shape) * 40), -160, 160)
            step = graph.unit / 16
            feed[name] = (steps * step).astype(np.float32)
            graph.pool.append(Exact(name, shape, step, 160 * step, 40 * step))
        else:
            low, high = RANGES[dtype]
            feed[name] = graph.random.integers(low, high + 1, shape).astype(dtype)
            zero, scale = graph.zero_point(dtype)[0], graph.power(-6, 0) * graph.unit
            names = graph.constant(np.float32(scale)), graph.constant(zero, dtype)
            graph.pool.append(Quantised(name, shape, dtype, scale, zero, *names, 70 * scale))
        declared = [
            f"{name}_{i}" if is_free and graph.chance(0.5) else d for i, d in enumerate(shape)
        ]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        inputs.append(helper.make_tensor_value_info(name, kind, declared))
    graph.grow_steps(graph.integer(4, 22))
    used = {name for node in graph.nodes for name in names_read(node)}
    made = [name for node in graph.nodes for name in node.output]
    inexact = {name for name, _ in graph.rounded}
    outputs = [n for n in made if n not in used or n in graph.leaves or graph.chance(0.06)]
    outputs = [n for n in outputs if n not in inexact]
    declared_outputs = [helper.make_empty_tensor_value_info(name) for name in outputs]
    model = helper.make_model(
        graph.to_graph(inputs, declared_outputs),
        opset_imports=[helper.make_opsetid("", graph.opset), helper.make_opsetid(CONTRIB, 1)],
        ir_version=8 if graph.opset < WIDE_TYPES else 10,
    )
    return graph, model, feed


def _rounding_decides(
    graph: QuantisedGraph, model: onnx.ModelProto, feed: dict[str, Array]
) -> bool:
    """Whether a result that engines may round otherwise is close to the middle of two steps."""
    if not graph.rounded:
        return False
    extended = onnx.ModelProto()
    extended.CopyFrom(model)
    extended.graph.node.extend(graph.side_nodes)
    del extended.graph.output[:]
    extended.graph.output.extend(helper.make_empty_tensor_value_info(n) for n, _ in graph.rounded)
    values = run_onnxruntime(extended, feed)
    for value, (_, scale) in zip(values, graph.rounded, strict=True):
        steps = np.abs(value.astype(np.float64)) / scale
        near = np.abs(steps - np.floor(steps) - 0.5) < MIDDLE
        if (near & (steps < RANGES["uint16"][1])).any():
            return True
    return False


def run_onnxruntime(
    model: onnx.ModelProto, feed: dict[str, Array], *, optimised: bool = False
) -> list[Array]:
    """onnxruntime's outputs on its CPU EP."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feed)))
