"""Random quantised graphs on every execution provider: onnxruntime's numbers to the bit.

The first 16 seeds; with ORT_LITE_WHOLE_SUITE=1 the first 400.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from parity.quantised_graphs import float_steps, integer_steps, moving_steps
from parity.quantised_graphs.compare import unequal_outputs
from parity.quantised_graphs.graph import make_quantised_model

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(400 if os.environ.get("ORT_LITE_WHOLE_SUITE") else 16)
PROVIDERS = ("CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider")
STEPS_OF = (float_steps, integer_steps, moving_steps)  # which register themselves


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_quantised_graph_gives_onnxruntimes_numbers_to_the_bit(
    seed: int, provider: str, tmp_path: Path
) -> None:
    model, feed = make_quantised_model(seed, even_zeros=provider == PROVIDERS[1])
    assert unequal_outputs(model, feed, provider, tmp_path) == []
