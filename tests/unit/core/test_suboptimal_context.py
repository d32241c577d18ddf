"""A context that its EP would rather compile again: a warning, or FAIL where that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from context_models import compile_context
from small_models import feed, mlp

import ort_lite as ort
from eps.openvino.provider import OpenVINOExecutionProvider
from ort_lite.ep.interface import Compatibility

if TYPE_CHECKING:
    from pathlib import Path

    from context_models import ContextModel

KEY = "session__fail_on_suboptimal_compiled_model"
PREFER = Compatibility(
    ort.CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION,
    message="built for a smaller device of the family",
)


@pytest.fixture(params=[False, True], ids=["external", "embedded"])
def made(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ContextModel:
    """A right context, for which the EP's verdict is to recompile."""
    proto = mlp()
    context = compile_context(tmp_path, proto, feed(proto), embed=request.param)
    monkeypatch.setattr(
        OpenVINOExecutionProvider, "check_compatibility", lambda *_: PREFER, raising=True
    )
    return context


@pytest.mark.parametrize("entries", [{}, {KEY: "0"}], ids=["default", "0"])
def test_it_runs_with_a_warning(
    made: ContextModel, entries: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", "ort_lite"), made.load(**entries) as session:
        for found, expected in zip(session.run(None, made.feed), made.expected, strict=True):
            np.testing.assert_array_equal(found, expected)
    assert PREFER.message in caplog.text


def test_it_fails_with_onnxruntimes_words_where_that_is_asked_for(made: ContextModel) -> None:
    words = (
        "Compiled model is suboptimal for execution provider: OpenVINOExecutionProvider. "
        "Recompilation recommended for better performance."
    )
    with pytest.raises(ort.Fail, match=words) as refused:
        made.load(**{KEY: "1"})
    assert PREFER.message in str(refused.value)
