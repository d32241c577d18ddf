"""ort_lite: compile ONNX models for the accelerator at hand, keep them, reload them fast.

`import ort_lite as ort` serves code written for `import onnxruntime as ort`. Names are loaded
when they are first used: importing the package costs a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_PACKAGES = ("as_onnxruntime", "capi")
"""Attributes that are packages; the first is called like a function."""
_HOMES = {
    "ort_lite.as_onnxruntime": ("as_onnxruntime",),
    "ort_lite.check": ("check_compatibility",),
    "ort_lite.compiler": ("ModelCompiler", "OrtCompileApiFlags"),
    "ort_lite.context.compatibility_info": (
        "get_compatibility_info_from_model",
        "get_compatibility_info_from_model_bytes",
        "get_model_compatibility_for_ep_devices",
    ),
    "ort_lite.context.data": ("OrtEpContextData", "OrtEpContextDataBuffer"),
    "ort_lite.context.external_initializers": ("OrtExternalInitializerInfo",),
    "ort_lite.context.shared_contexts": ("SharedContexts",),
    "ort_lite.environment": (
        "disable_telemetry_events",
        "enable_telemetry_events",
        "get_build_info",
        "get_device",
        "get_version_string",
        "has_collective_ops",
        "preload_dlls",
        "print_debug_info",
    ),
    "ort_lite.ep.interface": ("CompiledModelCompatibility", "OrtCompiledModelCompatibility"),
    "ort_lite.execution.adapters": ("AdapterFormat", "LoraAdapter"),
    "ort_lite.execution.allocators": (
        "OrtArenaCfg",
        "copy_tensors",
        "create_and_register_allocator",
        "create_and_register_allocator_v2",
    ),
    "ort_lite.execution.io_binding": ("IOBinding", "SessionIOBinding"),
    "ort_lite.execution.random_seed": ("set_seed",),
    "ort_lite.execution.sparse_tensor": ("SparseTensor",),
    "ort_lite.execution.sparse_values": ("OrtSparseFormat",),
    "ort_lite.execution.values": ("OrtValue",),
    "ort_lite.global_threads": ("set_global_thread_pool_sizes",),
    "ort_lite.model.info": ("ModelMetadata", "NodeArg"),
    "ort_lite.options": (
        "ExecutionMode",
        "ExecutionOrder",
        "GraphOptimizationLevel",
        "SessionOptions",
    ),
    "ort_lite.packages.model_package": (
        "ModelPackage",
        "NoSuitableVariant",
        "PackageSelection",
    ),
    "ort_lite.packages.variant_verdict": ("VariantVerdict",),
    "ort_lite.planning.assignment_info": ("OrtEpAssignedNode", "OrtEpAssignedSubgraph"),
    "ort_lite.providers.catalog": ("get_all_providers", "get_available_providers"),
    "ort_lite.providers.device_policy": ("MeasuredPolicy", "OrtExecutionProviderDevicePolicy"),
    "ort_lite.providers.devices": (
        "OrtEpDevice",
        "OrtHardwareDevice",
        "OrtHardwareDeviceType",
        "get_ep_devices",
        "get_hardware_devices",
    ),
    "ort_lite.providers.memory_info": (
        "OrtAllocatorType",
        "OrtDevice",
        "OrtDeviceMemoryType",
        "OrtDeviceVendorId",
        "OrtMemType",
        "OrtMemoryInfo",
        "OrtMemoryInfoDeviceType",
    ),
    "ort_lite.providers.sync_stream": ("OrtSyncStream",),
    "ort_lite.providers.registered_libraries": (
        "register_execution_provider_library",
        "unregister_execution_provider_library",
    ),
    "ort_lite.run_options": ("RunOptions",),
    "ort_lite.session": ("InferenceSession",),
    "ort_lite.session_log": ("set_default_logger_severity", "set_default_logger_verbosity"),
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
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from ort_lite.as_onnxruntime import as_onnxruntime as as_onnxruntime
    from ort_lite.check import check_compatibility as check_compatibility
    from ort_lite.compiler import ModelCompiler as ModelCompiler
    from ort_lite.compiler import OrtCompileApiFlags as OrtCompileApiFlags
    from ort_lite.context.compatibility_info import (
        get_compatibility_info_from_model as get_compatibility_info_from_model,
    )
    from ort_lite.context.compatibility_info import (
        get_compatibility_info_from_model_bytes as get_compatibility_info_from_model_bytes,
    )
    from ort_lite.context.compatibility_info import (
        get_model_compatibility_for_ep_devices as get_model_compatibility_for_ep_devices,
    )
    from ort_lite.context.data import OrtEpContextData as OrtEpContextData
    from ort_lite.context.data import OrtEpContextDataBuffer as OrtEpContextDataBuffer
    from ort_lite.context.external_initializers import (
        OrtExternalInitializerInfo as OrtExternalInitializerInfo,
    )
    from ort_lite.context.shared_contexts import SharedContexts as SharedContexts
    from ort_lite.environment import disable_telemetry_events as disable_telemetry_events
    from ort_lite.environment import enable_telemetry_events as enable_telemetry_events
    from ort_lite.environment import get_build_info as get_build_info
    from ort_lite.environment import get_device as get_device
    from ort_lite.environment import get_version_string as get_version_string
    from ort_lite.environment import has_collective_ops as has_collective_ops
    from ort_lite.environment import preload_dlls as preload_dlls
    from ort_lite.environment import print_debug_info as print_debug_info
    from ort_lite.ep.interface import CompiledModelCompatibility as CompiledModelCompatibility
    from ort_lite.ep.interface import OrtCompiledModelCompatibility as OrtCompiledModelCompatibility
    from ort_lite.execution.adapters import AdapterFormat as AdapterFormat
    from ort_lite.execution.adapters import LoraAdapter as LoraAdapter
    from ort_lite.execution.allocators import OrtArenaCfg as OrtArenaCfg
    from ort_lite.execution.allocators import copy_tensors as copy_tensors
    from ort_lite.execution.allocators import (
        create_and_register_allocator as create_and_register_allocator,
    )
    from ort_lite.execution.allocators import (
        create_and_register_allocator_v2 as create_and_register_allocator_v2,
    )
    from ort_lite.execution.io_binding import IOBinding as IOBinding
    from ort_lite.execution.io_binding import SessionIOBinding as SessionIOBinding
    from ort_lite.execution.random_seed import set_seed as set_seed
    from ort_lite.execution.sparse_tensor import SparseTensor as SparseTensor
    from ort_lite.execution.sparse_values import OrtSparseFormat as OrtSparseFormat
    from ort_lite.execution.values import OrtValue as OrtValue
    from ort_lite.global_threads import set_global_thread_pool_sizes as set_global_thread_pool_sizes
    from ort_lite.model.info import ModelMetadata as ModelMetadata
    from ort_lite.model.info import NodeArg as NodeArg
    from ort_lite.options import ExecutionMode as ExecutionMode
    from ort_lite.options import ExecutionOrder as ExecutionOrder
    from ort_lite.options import GraphOptimizationLevel as GraphOptimizationLevel
    from ort_lite.options import SessionOptions as SessionOptions
    from ort_lite.packages.model_package import ModelPackage as ModelPackage
    from ort_lite.packages.model_package import NoSuitableVariant as NoSuitableVariant
    from ort_lite.packages.model_package import PackageSelection as PackageSelection
    from ort_lite.packages.variant_verdict import VariantVerdict as VariantVerdict
    from ort_lite.planning.assignment_info import OrtEpAssignedNode as OrtEpAssignedNode
    from ort_lite.planning.assignment_info import OrtEpAssignedSubgraph as OrtEpAssignedSubgraph
    from ort_lite.providers.catalog import get_all_providers as get_all_providers
    from ort_lite.providers.catalog import get_available_providers as get_available_providers
    from ort_lite.providers.device_policy import MeasuredPolicy as MeasuredPolicy
    from ort_lite.providers.device_policy import (
        OrtExecutionProviderDevicePolicy as OrtExecutionProviderDevicePolicy,
    )
    from ort_lite.providers.devices import OrtEpDevice as OrtEpDevice
    from ort_lite.providers.devices import OrtHardwareDevice as OrtHardwareDevice
    from ort_lite.providers.devices import OrtHardwareDeviceType as OrtHardwareDeviceType
    from ort_lite.providers.devices import get_ep_devices as get_ep_devices
    from ort_lite.providers.devices import get_hardware_devices as get_hardware_devices
    from ort_lite.providers.memory_info import OrtAllocatorType as OrtAllocatorType
    from ort_lite.providers.memory_info import OrtDevice as OrtDevice
    from ort_lite.providers.memory_info import OrtDeviceMemoryType as OrtDeviceMemoryType
    from ort_lite.providers.memory_info import OrtDeviceVendorId as OrtDeviceVendorId
    from ort_lite.providers.memory_info import OrtMemoryInfo as OrtMemoryInfo
    from ort_lite.providers.memory_info import OrtMemoryInfoDeviceType as OrtMemoryInfoDeviceType
    from ort_lite.providers.memory_info import OrtMemType as OrtMemType
    from ort_lite.providers.registered_libraries import (
        register_execution_provider_library as register_execution_provider_library,
    )
    from ort_lite.providers.registered_libraries import (
        unregister_execution_provider_library as unregister_execution_provider_library,
    )
    from ort_lite.providers.sync_stream import OrtSyncStream as OrtSyncStream
    from ort_lite.run_options import RunOptions as RunOptions
    from ort_lite.session import InferenceSession as InferenceSession
    from ort_lite.session_log import set_default_logger_severity as set_default_logger_severity
    from ort_lite.session_log import set_default_logger_verbosity as set_default_logger_verbosity
    from ort_lite.status import DeviceReset as DeviceReset
    from ort_lite.status import EngineError as EngineError
    from ort_lite.status import EPFail as EPFail
    from ort_lite.status import Fail as Fail
    from ort_lite.status import InvalidArgument as InvalidArgument
    from ort_lite.status import InvalidGraph as InvalidGraph
    from ort_lite.status import InvalidProtobuf as InvalidProtobuf
    from ort_lite.status import ModelLoadCanceled as ModelLoadCanceled
    from ort_lite.status import ModelLoaded as ModelLoaded
    from ort_lite.status import ModelRequiresCompilation as ModelRequiresCompilation
    from ort_lite.status import NoModel as NoModel
    from ort_lite.status import NoSuchFile as NoSuchFile
    from ort_lite.status import NotFound as NotFound
    from ort_lite.status import NotImplemented as NotImplemented  # noqa: A004 - ONNX Runtime's public name
    from ort_lite.status import OrtLiteError as OrtLiteError
    from ort_lite.status import RuntimeException as RuntimeException
    from ort_lite.status import StatusCode as StatusCode

    __version__: str
    __all__: list[str]
else:
    __all__ = [*_HOME_OF, "__version__"]


def __getattr__(name: str) -> object:
    """Import what `name` lives in (PEP 562)."""
    if name == "__version__":
        return import_module("ort_lite.version").VERSION
    if name in _PACKAGES:
        return import_module(f"ort_lite.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ort_lite' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """Sorted public names, for `dir(ort_lite)`."""
    return [*_HOME_OF, "__version__"]
