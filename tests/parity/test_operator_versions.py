"""Each opset's form of the operators that changed, on each execution provider, as onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from parity.operator_versions import VersionedModel

import ort_lite as ort

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

CPU = "CPUExecutionProvider"
OPSETS = {
    CPU: range(8, 19),
    "OpenVINOExecutionProvider": range(8, 19),  # it converts each in code of its own
    "OpenCLExecutionProvider": (9, 11, 13, 18),
}
TOLERANCE = 1e-5


@pytest.mark.parametrize("free", [True, False], ids=["free", "known"])
@pytest.mark.parametrize(
    ("provider", "opset"), [(name, opset) for name, opsets in OPSETS.items() for opset in opsets]
)
def test_every_version_is_as_onnxruntime_computes_it(
    provider: str, opset: int, *, free: bool
) -> None:
    versions = VersionedModel(opset)
    source = versions.build(free=free)
    peer = onnxruntime.InferenceSession(source, providers=[CPU])
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(source, options, [provider]) as session:
        assert session.explain().node_counts()[provider] > len(versions.feed) / 2
        answers = session.run(None, versions.feed)
        assert session.get_providers()[0] == provider, "it fell back"
    names = [info.name for info in peer.get_outputs()]
    expected = peer.run(None, versions.feed)
    wrong = [
        name
        for name, mine, theirs in zip(names, answers, expected, strict=True)
        if not agree(mine, theirs)
    ]
    assert not wrong


def agree(mine: Array, theirs: Array) -> bool:
    """Whether type, shape and numbers are the same, the latter but for the last digits."""
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return False
    return np.allclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE)
