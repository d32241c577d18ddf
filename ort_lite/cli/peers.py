"""Sessions to compare a model's outputs and times with."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PEERS = ("onnxruntime", "cpu")
"""onnxruntime and ort_lite, each on its CPU execution provider."""


def open_peer(peer: str, model: Path) -> Any:  # noqa: ANN401 - a session of either library
    """A session of `peer` for `model`, on the CPU.

    Raises:
        CommandError: onnxruntime is not installed, or cannot load the model.
    """
    if peer == "cpu":
        from ort_lite.session import InferenceSession

        return InferenceSession(model, providers=["CPUExecutionProvider"])
    if find_spec("onnxruntime") is None:
        raise CommandError(
            ExitCode.USAGE,
            "comparing with onnxruntime needs the package onnxruntime",
            hint="pip install onnxruntime, or compare with cpu",
        )
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # its warnings about other people's models are not our result
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    # onnxruntime's exceptions derive from Exception and have no common base.
    except Exception as exc:
        raise CommandError(
            ExitCode.USAGE,
            f"onnxruntime cannot load {model}: {exc}",
            hint="for a context model, name the plain model with --reference",
        ) from exc


def run_named(session: Any, feed: Mapping[str, object]) -> dict[str, object]:  # noqa: ANN401 - a session of either library
    """All outputs by name.

    Raises:
        OrtLiteError: ort_lite's session fails.
        CommandError: onnxruntime's does.
    """
    names = [arg.name for arg in session.get_outputs()]
    try:
        outputs = session.run(names, dict(feed))
    except OrtLiteError:
        raise
    # onnxruntime's exceptions derive from Exception and have no common base.
    except Exception as exc:
        raise CommandError(
            ExitCode.DIFFERENT,
            f"onnxruntime fails on these inputs: {exc}",
            hint="random inputs do not suit every model; provide arrays with --inputs FILE.npz",
        ) from exc
    return dict(zip(names, outputs, strict=True))
