"""DynamicQuantizeLSTM on the device, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from device_models import NodeSet
from quantised_lstms import add_lstm

from ort_lite.status import NotImplemented as NotImplementedByAny


@pytest.mark.parametrize("platform", ["", "portable"])
def test_a_quantised_lstm_agrees_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_lstm(nodes, (6, 1, 8, 48), "bhc", direction="bidirectional")
    add_lstm(nodes, (5, 2, 3, 7), "bh")
    add_lstm(nodes, (4, 3, 5, 6), "z", direction="reverse")
    add_lstm(nodes, (9, 1, 4, 40), "bhcz", kind="uint8", direction="bidirectional")
    add_lstm(nodes, (1, 1, 1, 1), "b")
    add_lstm(nodes, (5, 6, 5, 37), "bhc", direction="bidirectional")
    add_lstm(nodes, (2, 9, 3, 20), "h", kind="uint8")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # with more, each thread's sequences have a range of their own
    expected = onnxruntime.InferenceSession(
        nodes.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    ).run(None, nodes.feeds)
    found = nodes.run(platform)
    for info, mine, theirs in zip(nodes.model.graph.output, found, expected, strict=True):
        assert mine.shape == theirs.shape
        # A state at the border of two steps may fall to either side: by then results differ by one.
        np.testing.assert_allclose(mine, theirs, atol=0.02, err_msg=info.name)
        assert np.median(np.abs(mine - theirs)) < 1e-6, info.name


def test_lengths_stay_on_the_cpu_ep() -> None:
    nodes = NodeSet()
    add_lstm(nodes, (2, 1, 3, 4), "n")
    (reason,) = nodes.refusals().values()
    assert "lengths or peepholes" in reason


@pytest.mark.parametrize(
    ("given", "attributes", "reason"),
    [
        ("p", {}, "peepholes"),
        ("", {"clip": 1.0}, "clip"),
        ("", {"input_forget": 1}, "input_forget"),
    ],
)
def test_what_no_provider_computes_is_an_error_with_the_reason(
    given: str, attributes: dict[str, float], reason: str
) -> None:
    nodes = NodeSet()
    add_lstm(nodes, (2, 1, 3, 4), given, **attributes)
    with pytest.raises(NotImplementedByAny, match=f"OpenCL: .*{reason}"):
        nodes.refusals()
