"""Random graphs, with bodies and free shapes, on every execution provider against onnxruntime.

The first 12 seeds; with ORT_LITE_WHOLE_SUITE=1 the first 300.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from parity.random_graphs import body_steps, dense_steps, shape_steps
from parity.random_graphs.compare import differences
from parity.random_graphs.graph import make_model

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(300 if os.environ.get("ORT_LITE_WHOLE_SUITE") else 12)
PROVIDERS = ("CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider")
STEPS_OF = (dense_steps, shape_steps, body_steps)  # which register themselves


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_graph_gives_onnxruntimes_numbers(
    seed: int, provider: str, tmp_path: Path
) -> None:
    model, feed = make_model(seed)
    assert differences(model.SerializeToString(), feed, provider, tmp_path) == []
