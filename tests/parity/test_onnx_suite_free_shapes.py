"""ONNX's own test suite through OpenVINO with free dimensions: no case wrong.

One case in eight, and all of operators that were once wrong; ORT_LITE_WHOLE_SUITE=1 runs all.
"""

from __future__ import annotations

from onnx_backend import FreeOpenVinoBackend, suite

ONCE_WRONG = ("test_attention_4d_gqa", "test_div_", "test_gru_", "test_lstm_", "test_simple_rnn_")

globals().update(suite(FreeOpenVinoBackend, __name__, every=8, always=ONCE_WRONG))
