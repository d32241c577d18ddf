"""LSTM, GRU and RNN on the device, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_models import NodeSet

import ort_lite as ort
from ctx_formats.lean_dataclass import replace
from eps.opencl import provider
from eps.opencl.compile.codegen.shared_steps import choose_parts
from eps.opencl.compile.ir import IrTensor, Recurrence
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.target import Groups, Target

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": 3, "GRU": 2, "RNN": 2}


def add_network(
    nodes: NodeSet, kind: str, sizes: tuple[int, ...], given: str = "", **attributes: Any
) -> None:
    """A network of (steps, batch, input, hidden); `given` names the optional inputs."""
    steps, batch, width, hidden = sizes
    random = np.random.default_rng(hidden)

    def floats(*shape: int) -> np.ndarray[Any, Any]:
        return random.standard_normal(shape).astype(np.float32) / np.float32(hidden**0.5)

    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = GATES[kind] * hidden
    state = (directions, batch, hidden)
    inputs: list[Any] = [
        floats(steps, batch, width),
        floats(directions, rows, width),
        floats(directions, rows, hidden),
        floats(directions, 2 * rows) if "b" in given else None,
        random.integers(0, steps + 1, batch).astype(np.int32) if "n" in given else None,
        floats(*state) if "h" in given else None,
        floats(*state) if "c" in given else None,
        floats(directions, 3 * hidden) if "p" in given else None,
    ]
    count = 8 if kind == "LSTM" else 6
    nodes.add(kind, inputs[:count], (1, 2, 3, 7), STATES[kind], hidden_size=hidden, **attributes)


def add_networks(nodes: NodeSet) -> None:
    for kind in GATES:
        add_network(nodes, kind, (5, 2, 3, 7), "bh")
        add_network(nodes, kind, (6, 1, 8, 48), "b", direction="bidirectional")
        add_network(nodes, kind, (4, 3, 5, 6), "bn", direction="bidirectional")
        add_network(nodes, kind, (3, 1, 4, 5), direction="reverse")
    add_network(nodes, "LSTM", (5, 2, 3, 10), "bhcp")
    add_network(nodes, "GRU", (5, 2, 3, 10), "bh", linear_before_reset=1)
    add_network(nodes, "GRU", (4, 1, 3, 20), linear_before_reset=1, direction="bidirectional")
    add_network(nodes, "RNN", (4, 1, 3, 9), "b", activations=["Relu"])
    hard = ["HardSigmoid", "Tanh", "Tanh"]
    add_network(nodes, "GRU", (4, 1, 3, 9), "b", activations=hard[:2])
    usual = {"activation_alpha": [0.2, 0.2], "activation_beta": [0.5, 0.5]}
    both_ways = {"direction": "bidirectional", "activations": hard * 2}
    add_network(nodes, "LSTM", (4, 2, 3, 8), "b", **both_ways, **usual)


@pytest.mark.parametrize("platform", ["", "portable"])
def test_recurrent_networks_agree_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_networks(nodes)
    nodes.check(platform=platform, rtol=2e-5, atol=5e-6)


def add_shared_networks(nodes: NodeSet) -> None:
    """One sequence each, long and wide enough for several work-items to share its steps."""
    add_network(nodes, "LSTM", (40, 1, 8, 128), "bhc")
    add_network(nodes, "LSTM", (40, 1, 8, 128), "bhcp", direction="reverse")
    add_network(nodes, "LSTM", (60, 1, 8, 96), "bnc", direction="reverse")
    add_network(nodes, "LSTM", (30, 2, 8, 128), "bnh", direction="bidirectional")
    add_network(nodes, "GRU", (40, 1, 8, 128), "bh", linear_before_reset=1)
    add_network(nodes, "GRU", (50, 1, 8, 136), "n", linear_before_reset=1)
    add_network(nodes, "GRU", (40, 1, 8, 128), "bh")  # reset before: not shared
    add_network(nodes, "RNN", (40, 1, 8, 256), "bh", activations=["Relu"])


@pytest.mark.parametrize("platform", ["", "portable"])
@pytest.mark.parametrize("units", [2, 32])
def test_items_that_share_steps_agree_with_onnxruntime(
    units: int, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them the device runs side by side."""

    def describe_with_units(*arguments: Any) -> Target:
        return replace(describe_target(*arguments), units=units)

    monkeypatch.setattr(provider, "describe_target", describe_with_units)
    nodes = NodeSet()
    add_shared_networks(nodes)
    nodes.check(platform=platform, rtol=2e-5, atol=5e-6)
    nodes.run_with({"platform": platform} if platform else {}, times=4)


def test_a_length_that_no_sequence_has_is_an_error_where_items_share_steps() -> None:
    nodes = NodeSet()
    add_network(nodes, "LSTM", (40, 1, 8, 128), "n")
    (lengths,) = (name for name, value in nodes.feeds.items() if value.dtype == np.int32)
    nodes.feeds[lengths] = np.array([41], np.int32)
    with pytest.raises(ort.OrtLiteError, match="out of the range"):
        nodes.run()


X86 = Target(
    vector=16, accumulators=28, tasks=64, attributes="", double=True, alignment=128,
    late_binaries=False, calls_builtins=False, multiplies_pairs=True, units=4,
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "sizes", "target", "parts"),
    [
        ("LSTM", (100, 1, 256), {}, 4),
        ("LSTM", (100, 1, 256), {"units": 1}, 1),
        ("LSTM", (100, 1, 256), {"units": 64}, 8),
        ("LSTM", (100, 2, 256), {}, 2),
        ("LSTM", (100, 4, 256), {}, 1),
        ("LSTM", (100, 1, 128), {"units": 64}, 4),
        ("LSTM", (100, 1, 64), {}, 1),
        ("LSTM", (3, 1, 256), {}, 1),
        ("GRU", (100, 1, 200), {}, 2),
        ("GRU", (100, 1, 204), {}, 3),
        ("GRU", (100, 1, 202), {}, 1),
        ("RNN", (100, 1, 256), {}, 4),
        ("LSTM", (100, 1, 256), {"multiplies_pairs": False}, 1),
        ("LSTM", (100, 1, 256), {"groups": Groups(size=64, units=4, local=0)}, 1),
    ],
)
def test_cores_that_would_idle_share_the_steps_of_a_sequence(
    kind: str, sizes: tuple[int, int, int], target: dict[str, Any], parts: int
) -> None:
    """Where a step is long enough; whole vectors each, and at most eight."""
    steps, batch, hidden = sizes
    rows = GATES[kind] * hidden
    inputs = (
        IrTensor((steps, batch, rows), "float32"),
        IrTensor((1, rows, hidden), "float32"),
    )
    op = Recurrence(
        inputs, IrTensor((steps + 1, 1, batch, hidden), "float32"), kind=kind, reverse=(False,),
        activations=("Sigmoid", "Tanh", "Tanh"), linear_before_reset=kind == "GRU",
    )  # fmt: skip
    assert choose_parts(op, replace(X86, **target)) == parts
    if kind == "GRU":
        op.linear_before_reset = False
        assert choose_parts(op, replace(X86, **target)) == 1


def test_a_network_that_no_kernel_fits_is_refused_with_the_reason() -> None:
    nodes = NodeSet()
    add_network(nodes, "LSTM", (2, 1, 3, 4), clip=1.0)
    add_network(nodes, "LSTM", (2, 1, 3, 4), input_forget=1)
    add_network(nodes, "GRU", (2, 1, 3, 4), activations=["Sigmoid", "Softsign"])
    add_network(nodes, "RNN", (2, 1, 3, 4), activations=["Relu"], activation_alpha=[0.5])
    add_network(nodes, "RNN", (2, 1, 3, 4), activations=["HardSigmoid"], activation_alpha=[0.5])
    add_network(nodes, "RNN", (1, 1, 1, 2049))
    x, w = np.ones((2, 1, 3), np.float32), np.ones((1, 4, 3), np.float32)
    nodes.add("RNN", [x, w, np.ones((1, 4, 4), np.float32)], hidden_size=4)
    reasons = list(nodes.refusals().values())
    wanted = ["clip", "input_forget", "Softsign", "with parameters", "with parameters", "2049"]
    wanted.append("weights of the input")
    assert [w in r for w, r in zip(wanted, reasons, strict=True)] == [True] * len(wanted)
