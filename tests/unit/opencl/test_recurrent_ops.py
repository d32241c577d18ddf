"""LSTM, GRU and RNN on the device, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_models import NodeSet

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
