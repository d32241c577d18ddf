"""What do a launch, a crossing and a node cost on each execution provider?

`python -m benchmarks.placement.node_costs [EP ...]`. The constants of `eps/*/placement_costs.py`
come from this table (docs/adr/measurements/0037.md).
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

import ort_lite as ort
from benchmarks.harness.conditions import conditions
from benchmarks.harness.report import text_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import onnx

SECONDS = 0.4
"""How long each model is run; the least time counts, which other work moves least."""
PROVIDERS = ("CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider")
RECURRENCES: Sequence[tuple[str, int, Mapping[str, Any]]] = (
    ("GRU", 3, {}),
    ("GRU", 3, {"linear_before_reset": 1}),
    ("LSTM", 4, {}),
    ("RNN", 1, {}),
)
"""Operators, their gates and attributes."""
COLUMNS = ("model", "shapes", "EP", "least us", "median us", "load ms")
LEGEND = """
least us, median us: of session.run; "1 tiny node" has next to nothing but overhead, so that
differences from it are what more nodes, values or elements cost. load ms: of the session.
"""
Feed = dict[str, "np.ndarray[Any, np.dtype[Any]]"]


class Case:
    """A model and its feed.

    Attributes:
        name: For the table.
        free: Whether the model leaves the sizes of its inputs open.
    """

    def __init__(
        self,
        name: str,
        nodes: Sequence[onnx.NodeProto],
        shapes: Mapping[str, tuple[int, ...]],
        outputs: Sequence[str],
        weights: Mapping[str, tuple[int, ...]] | None = None,
        *,
        free: bool = False,
    ) -> None:
        self.name, self.free = name, free
        random = np.random.default_rng(0)
        self.feed: Feed = {n: random.random(s, dtype=np.float32) for n, s in shapes.items()}
        held = {
            n: (random.random(s, dtype=np.float32) - 0.5) / 10 for n, s in (weights or {}).items()
        }
        inputs = [_info(n, [None] * len(s) if free else s) for n, s in shapes.items()]
        graph = helper.make_graph(
            nodes,
            "case",
            inputs,
            [_info(name, None) for name in outputs],
            [
                helper.make_tensor(n, TensorProto.FLOAT, a.shape, a.tobytes(), raw=True)
                for n, a in held.items()
            ],
        )
        opset = helper.make_opsetid("", 17)
        model = helper.make_model(graph, ir_version=8, opset_imports=[opset])
        self.model = bytes(model.SerializeToString())


def cases() -> Iterator[Case]:
    """Every model, with fixed and, where that can make a difference, with free shapes."""
    for free in (False, True):
        for count in (1, 65):
            nodes = [
                helper.make_node("Softmax" if i % 2 else "Neg", [f"v{i}"], [f"v{i + 1}"])
                for i in range(count)
            ]
            name = f"{count} tiny node{'s' if count > 1 else ''}"
            yield Case(name, nodes, {"v0": (8, 8)}, [f"v{count}"], free=free)
        nodes = [helper.make_node("Neg", [f"x{i}"], [f"y{i}"]) for i in range(9)]
        shapes = {f"x{i}": (4,) for i in range(9)}
        yield Case("9 values in, 9 out", nodes, shapes, [f"y{i}" for i in range(9)], free=free)
        yield from _heavy(free=free)


def _heavy(*, free: bool) -> Iterator[Case]:
    for op_type in ("Neg", "Erf"):
        for size in (1 << 16, 1 << 20):
            node = helper.make_node(op_type, ["x"], ["y"])
            yield Case(f"{op_type} of {size}", [node], {"x": (size,)}, ["y"], free=free)
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    yield Case("64x512x512", [product], {"x": (64, 512)}, ["y"], {"w": (512, 512)}, free=free)
    for channels, side, window, group in ((64, 28, 3, 1), (16, 8, 3, 1), (64, 56, 3, 64)):
        name = f"Conv {channels} {side}x{side} by {window}, group {group}"
        pads = [window // 2] * 4
        node = helper.make_node("Conv", ["x", "w"], ["y"], pads=pads, group=group)
        filters = {"w": (channels, channels // group, window, window)}
        yield Case(name, [node], {"x": (1, channels, side, side)}, ["y"], filters, free=free)
    if not free:
        yield from _recurrent()
    for steps in (8, 64):
        node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=64)
        weights = {"w": (1, 256, 64), "r": (1, 256, 64)}
        yield Case(
            f"LSTM of {steps} steps", [node], {"x": (steps, 1, 64)}, ["y"], weights, free=free
        )


def _recurrent() -> Iterator[Case]:
    """Fifty steps of each kind: one sequence, one in both directions, and eight sequences."""
    for (op_type, gates, attributes), size in product(RECURRENCES, (64, 128, 256)):
        for rows, ways in ((1, 1), (1, 2), (8, 1)):
            node = helper.make_node(
                op_type,
                ["x", "w", "r"],
                ["y"],
                hidden_size=size,
                direction="bidirectional" if ways == 2 else "forward",
                **attributes,
            )
            weights = dict.fromkeys(("w", "r"), (ways, gates * size, size))
            reset = ", reset after" if attributes else ""
            name = f"{op_type} of {size}{reset}, {rows} rows, {ways} ways"
            yield Case(name, [node], {"x": (50, rows, size)}, ["y"], weights)


def _info(name: str, shape: Sequence[int | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("providers", nargs="*", metavar="EP", help=f"default: {PROVIDERS}")
    arguments = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for case in cases():
        shapes = "free" if case.free else "fixed"
        rows += [
            (case.name, shapes, provider, *_measure(case, provider))
            for provider in arguments.providers or PROVIDERS
        ]
        sys.stderr.write(f"{case.name} done\n")
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND)
    return 0


def _measure(case: Case, provider: str) -> tuple[str, str, str]:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    began = perf_counter()
    with ort.InferenceSession(case.model, options, providers=[provider]) as session:
        load = perf_counter() - began
        if list(session.explain().node_counts()) != [provider]:
            return "-", "-", "-"
        seconds: list[float] = []
        session.run(None, case.feed)
        end = perf_counter() + SECONDS
        while perf_counter() < end or not seconds:
            began = perf_counter()
            session.run(None, case.feed)
            seconds.append(perf_counter() - began)
    seconds.sort()
    middle = seconds[len(seconds) // 2]
    return f"{seconds[0] * 1e6:.1f}", f"{middle * 1e6:.1f}", f"{load * 1e3:.0f}"


if __name__ == "__main__":
    sys.exit(main())
