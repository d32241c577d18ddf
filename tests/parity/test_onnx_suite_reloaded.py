"""ONNX's own test suite out of contexts: what is reloaded gives what was compiled.

Every thirtieth case, and all of operators that were once wrong; ORT_LITE_WHOLE_SUITE=1 runs all.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx_backend import OpenClBackend, OpenVinoBackend, PreparedModel, suite

import ort_lite as ort

if TYPE_CHECKING:
    import onnx

ALWAYS = ("test_flexattention_", "test_rotary_embedding")
"""Beginnings of names: contexts with them did not load, or gave other numbers."""


class _Reloaded:
    """Compiles a model into a context, and runs what is loaded from there."""

    providers: list[str]

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> PreparedModel:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m_ctx.onnx"
            options = ort.SessionOptions()
            options.add_session_config_entry("session.placement", "all")
            options.add_session_config_entry("ep.context_enable", "1")
            options.add_session_config_entry("ep.context_file_path", str(path))
            options.log_severity_level = 3
            data = model.SerializeToString()
            session = ort.InferenceSession(data, options, providers=cls.providers)
            if path.exists():  # an EP other than the CPU EP took a node
                session.close()
                session = ort.InferenceSession(path, providers=cls.providers)
            return PreparedModel(session)


class ReloadedOpenVino(_Reloaded, OpenVinoBackend):
    """OpenVINO's contexts."""


class ReloadedOpenCl(_Reloaded, OpenClBackend):
    """OpenCL's contexts."""


globals().update(
    {
        f"{backend.__name__}{name}": cases
        for backend in (ReloadedOpenVino, ReloadedOpenCl)
        for name, cases in suite(backend, __name__, every=30, always=ALWAYS).items()
    }
)
