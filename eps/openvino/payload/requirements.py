"""What the blobs that are made here will require of whoever loads them.

OpenVINO 2026.4 and later write a text to the start of a CPU's or GPU's blob (blob_header.py), and
tell it of a compiled model alone; so does the NPU's compiler, with or without a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.sdk.binding import ov
from eps.openvino.sdk_errors import PROPERTY_ERRORS

if TYPE_CHECKING:
    import openvino

    from eps.openvino.options import OpenVINOOptions

_PROPERTY = "RUNTIME_REQUIREMENTS"
_DEVICES = ("CPU", "GPU", "NPU")


def requirements_of(compiled: openvino.CompiledModel, options: OpenVINOOptions) -> str:
    """The text of a compiled model; "" where its plug-in has none (before 2026.4)."""
    if options.kind not in _DEVICES:
        return ""
    try:
        return str(compiled.get_property(_PROPERTY))
    except PROPERTY_ERRORS:
        return ""


def present_requirements(core: openvino.Core, options: OpenVINOOptions) -> str:
    """The text for the device, of a one-operator model compiled for it (25 ms or so)."""
    if options.kind not in _DEVICES:
        return ""
    absent = {"NPU_PLATFORM": options.npu_platform} if options.npu_platform else {}
    try:
        compiled = core.compile_model(_smallest_model(), options.device, absent)
    except PROPERTY_ERRORS:
        return ""
    return requirements_of(compiled, options)


def _smallest_model() -> openvino.Model:
    """A model that only hands on its input."""
    given = ov.op.Parameter(ov.Type.f32, ov.Shape([1]))
    return ov.Model([ov.op.Result(given.output(0))], [given], "smallest")
