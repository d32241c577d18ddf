"""ort_lite: compile ONNX models for the accelerator at hand, keep them, reload them fast.

`import ort_lite as ort` serves code written for `import onnxruntime as ort`. Names are loaded
when they are first used: importing the package costs a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ort_lite.as_onnxruntime import as_onnxruntime
    from ort_lite.check import check_compatibility
    from ort_lite.compiler import ModelCompiler, OrtCompileApiFlags
    from ort_lite.context.compatibility_info import (
        get_compatibility_info_from_model,
        get_compatibility_info_from_model_bytes,
        get_model_compatibility_for_ep_devices,
    )
    from ort_lite.context.data import OrtEpContextData, OrtEpContextDataBuffer
    from ort_lite.context.external_initializers import OrtExternalInitializerInfo
    from ort_lite.context.shared_contexts import SharedContexts
    from ort_lite.environment import (
        disable_telemetry_events,
        enable_telemetry_events,
        get_build_info,
        get_device,
        get_version_string,
        has_collective_ops,
    )
    from ort_lite.ep.interface import CompiledModelCompatibility, OrtCompiledModelCompatibility
    from ort_lite.execution.adapters import AdapterFormat, LoraAdapter
    from ort_lite.execution.allocators import (
        OrtArenaCfg,
        create_and_register_allocator,
        create_and_register_allocator_v2,
    )
    from ort_lite.execution.io_binding import IOBinding, SessionIOBinding
    from ort_lite.execution.memory_info import (
        OrtAllocatorType,
        OrtDevice,
        OrtDeviceMemoryType,
        OrtDeviceVendorId,
        OrtMemoryInfo,
        OrtMemoryInfoDeviceType,
        OrtMemType,
    )
    from ort_lite.execution.random_seed import set_seed
    from ort_lite.execution.sparse_tensor import SparseTensor
    from ort_lite.execution.sparse_values import OrtSparseFormat
    from ort_lite.execution.streams import OrtSyncStream, copy_tensors
    from ort_lite.execution.values import OrtValue
    from ort_lite.global_threads import set_global_thread_pool_sizes
    from ort_lite.model.info import ModelMetadata, NodeArg
    from ort_lite.options import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        SessionOptions,
    )
    from ort_lite.package_info import preload_dlls, print_debug_info
    from ort_lite.planning.assignment_info import OrtEpAssignedNode, OrtEpAssignedSubgraph
    from ort_lite.providers.catalog import get_all_providers, get_available_providers
    from ort_lite.providers.device_policy import OrtExecutionProviderDevicePolicy
    from ort_lite.providers.devices import (
        OrtEpDevice,
        OrtHardwareDevice,
        OrtHardwareDeviceType,
        get_ep_devices,
        get_hardware_devices,
    )
    from ort_lite.providers.registered_libraries import (
        register_execution_provider_library,
        unregister_execution_provider_library,
    )
    from ort_lite.run_options import RunOptions
    from ort_lite.session import InferenceSession
    from ort_lite.session_log import set_default_logger_severity, set_default_logger_verbosity
    from ort_lite.status import (
        DeviceReset,
        EngineError,
        EPFail,
        Fail,
        InvalidArgument,
        InvalidGraph,
        InvalidProtobuf,
        ModelLoadCanceled,
        ModelLoaded,
        ModelRequiresCompilation,
        NoModel,
        NoSuchFile,
        NotFound,
        NotImplemented,  # noqa: A004 - ONNX Runtime's public name
        OrtLiteError,
        RuntimeException,
        StatusCode,
    )
    from ort_lite.version import VERSION as __version__  # noqa: N811 - the usual name

__all__ = [
    "AdapterFormat",
    "LoraAdapter",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "SessionIOBinding",
    "SparseTensor",
    "OrtExecutionProviderDevicePolicy",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "print_debug_info",
    "OrtArenaCfg",
    "OrtSyncStream",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "set_global_thread_pool_sizes",
    "set_seed",
    "register_execution_provider_library",
    "unregister_execution_provider_library",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "CompiledModelCompatibility",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelCompiler",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtCompileApiFlags",
    "OrtCompiledModelCompatibility",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtExternalInitializerInfo",
    "OrtEpDevice",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtLiteError",
    "OrtValue",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "SharedContexts",
    "StatusCode",
    "__version__",
    "as_onnxruntime",
    "check_compatibility",
    "get_available_providers",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_ep_devices",
    "get_hardware_devices",
    "get_model_compatibility_for_ep_devices",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]

_PACKAGES = ("as_onnxruntime", "capi")
"""Attributes that are packages; the first is called like a function."""
_HOMES = {
    "ort_lite.execution.adapters": ("AdapterFormat", "LoraAdapter"),
    "ort_lite.as_onnxruntime": ("as_onnxruntime",),
    "ort_lite.execution.memory_info": (
        "OrtAllocatorType",
        "OrtDevice",
        "OrtDeviceMemoryType",
        "OrtDeviceVendorId",
        "OrtMemType",
        "OrtMemoryInfo",
        "OrtMemoryInfoDeviceType",
    ),
    "ort_lite.execution.allocators": (
        "OrtArenaCfg",
        "create_and_register_allocator",
        "create_and_register_allocator_v2",
    ),
    "ort_lite.global_threads": ("set_global_thread_pool_sizes",),
    "ort_lite.execution.sparse_tensor": ("SparseTensor",),
    "ort_lite.execution.streams": ("OrtSyncStream", "copy_tensors"),
    "ort_lite.execution.sparse_values": ("OrtSparseFormat",),
    "ort_lite.providers.device_policy": ("OrtExecutionProviderDevicePolicy",),
    "ort_lite.environment": (
        "disable_telemetry_events",
        "enable_telemetry_events",
        "get_build_info",
        "get_device",
        "get_version_string",
        "has_collective_ops",
    ),
    "ort_lite.execution.random_seed": ("set_seed",),
    "ort_lite.providers.registered_libraries": (
        "register_execution_provider_library",
        "unregister_execution_provider_library",
    ),
    "ort_lite.planning.assignment_info": (
        "OrtEpAssignedNode",
        "OrtEpAssignedSubgraph",
    ),
    "ort_lite.package_info": ("preload_dlls", "print_debug_info"),
    "ort_lite.providers.catalog": ("get_all_providers", "get_available_providers"),
    "ort_lite.check": ("check_compatibility",),
    "ort_lite.context.compatibility_info": (
        "get_compatibility_info_from_model",
        "get_compatibility_info_from_model_bytes",
        "get_model_compatibility_for_ep_devices",
    ),
    "ort_lite.compiler": ("ModelCompiler", "OrtCompileApiFlags"),
    "ort_lite.context.data": ("OrtEpContextData", "OrtEpContextDataBuffer"),
    "ort_lite.providers.devices": (
        "OrtEpDevice",
        "OrtHardwareDevice",
        "OrtHardwareDeviceType",
        "get_ep_devices",
        "get_hardware_devices",
    ),
    "ort_lite.context.external_initializers": ("OrtExternalInitializerInfo",),
    "ort_lite.execution.values": ("OrtValue",),
    "ort_lite.execution.io_binding": ("IOBinding", "SessionIOBinding"),
    "ort_lite.ep.interface": (
        "CompiledModelCompatibility",
        "OrtCompiledModelCompatibility",
    ),
    "ort_lite.model.info": ("ModelMetadata", "NodeArg"),
    "ort_lite.options": (
        "ExecutionMode",
        "ExecutionOrder",
        "GraphOptimizationLevel",
        "SessionOptions",
    ),
    "ort_lite.run_options": ("RunOptions",),
    "ort_lite.session": ("InferenceSession",),
    "ort_lite.session_log": ("set_default_logger_severity", "set_default_logger_verbosity"),
    "ort_lite.context.shared_contexts": ("SharedContexts",),
    "ort_lite.status": (
        "DeviceReset",
        "EPFail",
        "EngineError",
        "Fail",
        "InvalidArgument",
        "InvalidGraph",
        "InvalidProtobuf",
        "ModelLoadCanceled",
        "ModelLoaded",
        "ModelRequiresCompilation",
        "NoModel",
        "NoSuchFile",
        "NotFound",
        "NotImplemented",
        "OrtLiteError",
        "RuntimeException",
        "StatusCode",
    ),
}


def __getattr__(name: str) -> object:
    """Import what `name` lives in (PEP 562)."""
    if name == "__version__":
        return import_module("ort_lite.version").VERSION
    if name in _PACKAGES:
        return import_module(f"ort_lite.{name}")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'ort_lite' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
