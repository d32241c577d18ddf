"""Names that code imports from onnxruntime's binding, mostly the exceptions.

They are those of the package above this one, but for those that the binding does not have or means
something else by, and a few that onnxruntime keeps to its binding.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ort_lite

_PACKAGE = import_module(__name__.partition(".")[0])
"""ort_lite, or onnxruntime where this is a module of the stand-in."""
_NOT_ITS = {
    "CompiledModelCompatibility",
    "IOBinding",
    "MeasuredPolicy",
    "ModelPackage",
    "NoSuitableVariant",
    "OrtDeviceVendorId",
    "OrtLiteError",
    "PackageSelection",
    "preload_dlls",
    "print_debug_info",
    "SparseTensor",
    "SharedContexts",
    "StatusCode",
    "VariantVerdict",
    "__version__",
    "as_onnxruntime",
    "check_compatibility",
}
_ITS_ALONE = {
    "ArenaExtendStrategy": "ort_lite.execution.allocators",
    "get_all_operator_schema": "ort_lite.providers.operator_listing",
    "get_all_opkernel_def": "ort_lite.providers.operator_listing",
    "get_default_session_options": "ort_lite.environment",
    "get_registered_ep_kernel_defs": "ort_lite.providers.operator_listing",
    "kNextPowerOfTwo": "ort_lite.execution.allocators",
    "kSameAsRequested": "ort_lite.execution.allocators",
    **dict.fromkeys(
        (
            *("quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits"),
            *("quantize_matmul_bnb4", "quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits"),
        ),
        "ort_lite.block_quantization",
    ),
    "OrtValueVector": "ort_lite.execution.value_vector",
    "SparseBlockSparseView": "ort_lite.execution.sparse_values",
    "SparseCooView": "ort_lite.execution.sparse_values",
    "SparseCsrView": "ort_lite.execution.sparse_values",
    "SparseTensor": "ort_lite.execution.sparse_values",
    "is_dlpack_uint8_tensor": "ort_lite.execution.dlpack",
    "OrtDeviceEpIncompatibilityReason": "ort_lite.providers.devices",
    "get_hardware_device_ep_incompatibility_details": "ort_lite.providers.devices",
}
__all__ = sorted((set(dir(ort_lite)) - _NOT_ITS) | _ITS_ALONE.keys())


def __getattr__(name: str) -> Any:  # noqa: ANN401 - as various as the names
    """Import what `name` lives in (PEP 562)."""
    if name == "InferenceSession":
        return import_module(f"{__package__}.binding_session").InferenceSession
    if name in _ITS_ALONE:
        return getattr(import_module(_ITS_ALONE[name]), name)
    if name in __all__:
        return getattr(_PACKAGE, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Names of the module, for `dir`."""
    return list(__all__)
