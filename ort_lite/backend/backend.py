"""ONNX's backend interface: models in, predictions out."""

from __future__ import annotations

import os
import unittest
from importlib import import_module
from typing import Any

import onnx
from onnx.backend.base import Backend

from ort_lite.environment import get_device
from ort_lite.options import SessionOptions

from .backend_rep import OnnxRuntimeBackendRep, set_allowed  # noqa: TID252 - of the package that this is a module of, ort_lite or onnxruntime

_PACKAGE = import_module(__name__.partition(".")[0])
"""ort_lite, or onnxruntime where this is a module of the stand-in."""

SESSION_OPTIONS = frozenset(
    {
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "execution_mode",
        "execution_order",
        "graph_optimization_level",
        "inter_op_num_threads",
        "intra_op_num_threads",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "use_deterministic_compute",
        "use_per_session_threads",
    }
)
"""Attributes of SessionOptions that a keyword may set: none that writes files, as there."""


class OnnxRuntimeBackend(Backend):
    """Sessions behind ONNX's interface; devices are what `get_device` names, "CPU"."""

    allowReleasedOpsetsOnly = os.environ.get("ALLOW_RELEASED_ONNX_OPSET_ONLY", "1") == "1"  # noqa: N815 - onnxruntime's name
    """Whether a ModelProto with an opset that ONNX has not released is skipped."""

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **kwargs: Any) -> bool:  # noqa: ANN401, ARG003 - ONNX's interface
        """Whether `device` is one of ours; every model is taken."""
        return cls.supports_device(device if device is not None else get_device())

    @classmethod
    def is_opset_supported(cls, model: onnx.ModelProto) -> tuple[bool, str]:
        """Whether ONNX has released the model's opsets, and what to say if not."""
        if not cls.allowReleasedOpsetsOnly:
            return True, ""
        for opset in model.opset_import:
            domain = opset.domain or "ai.onnx"
            if (domain, opset.version) not in onnx.helper.OP_SET_ID_VERSION_MAP:
                return False, (
                    f"opset {opset.version} of domain '{domain}' is not released; "
                    "ALLOW_RELEASED_ONNX_OPSET_ONLY=0 tries such models"
                )
        return True, ""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device of this kind is behind the interface."""
        kind = "GPU" if device == "CUDA" else device
        return kind in get_device().split("-")

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **kwargs: Any) -> OnnxRuntimeBackendRep:  # noqa: ANN401 - ONNX's interface
        """A model that can be run.

        Args:
            model: A ModelProto, the bytes of one, a file, a session, or what this returned.
            device: "CPU" or None.
            kwargs: Attributes of SessionOptions; other names are ignored.

        Raises:
            RuntimeError: An attribute that may not be set here, or another device.
            unittest.SkipTest: An opset that is not released, as in onnxruntime.
            onnx.checker.ValidationError: A ModelProto that ONNX's checker refuses.
            OrtLiteError: As a session.
        """
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        session_class = _PACKAGE.InferenceSession
        if isinstance(model, session_class):
            return OnnxRuntimeBackendRep(model)
        if not isinstance(model, (str, bytes, os.PathLike)):
            model = cls._check_model(model)
        if device is not None and not cls.supports_device(device):
            raise RuntimeError(f"Incompatible device expected '{device}', got '{get_device()}'")
        options = set_allowed(SessionOptions(), kwargs, SESSION_OPTIONS)
        without = os.environ.get("ORT_ONNX_BACKEND_EXCLUDE_PROVIDERS", "").split(",")
        providers = [p for p in _PACKAGE.get_available_providers() if p not in without]
        session = session_class(model, options, providers=providers)
        session.disable_fallback()
        return OnnxRuntimeBackendRep(session)

    @classmethod
    def _check_model(cls, model: onnx.ModelProto) -> bytes:
        data: bytes = model.SerializeToString()
        onnx.checker.check_model(data)
        released, why_not = cls.is_opset_supported(model)
        if not released:
            raise unittest.SkipTest(why_not)
        return data

    @classmethod
    def run_model(  # type: ignore[override]  # a list, as onnxruntime
        cls,
        model: Any,  # noqa: ANN401 - as prepare
        inputs: Any,  # noqa: ANN401 - as OnnxRuntimeBackendRep.run
        device: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - as prepare
    ) -> list[Any]:
        """All outputs of `model`; keywords go to `prepare` and to the run.

        Raises:
            RuntimeError: As `prepare` and OnnxRuntimeBackendRep.run.
            OrtLiteError: As a session.
        """
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - ONNX's interface
        """Not there, as in onnxruntime.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("a node alone is not run; make a model of it and run that")


is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device
