"""The names of onnxruntime's binding that ort_lite has, under onnxruntime's module path."""

from __future__ import annotations

from ort_lite.assignment_info import OrtEpAssignedNode, OrtEpAssignedSubgraph
from ort_lite.catalog import get_available_providers
from ort_lite.compatibility_info import (
    OrtCompiledModelCompatibility,
    get_compatibility_info_from_model,
    get_compatibility_info_from_model_bytes,
    get_model_compatibility_for_ep_devices,
)
from ort_lite.compiler import ModelCompiler, OrtCompileApiFlags
from ort_lite.context_data import OrtEpContextData, OrtEpContextDataBuffer
from ort_lite.device_incompatibility import (
    OrtDeviceEpIncompatibilityReason,
    get_hardware_device_ep_incompatibility_details,
)
from ort_lite.device_policy import OrtExecutionProviderDevicePolicy
from ort_lite.devices import (
    OrtEpDevice,
    OrtHardwareDevice,
    OrtHardwareDeviceType,
    get_ep_devices,
    get_hardware_devices,
)
from ort_lite.environment import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
)
from ort_lite.external_initializers import OrtExternalInitializerInfo
from ort_lite.model_info import ModelMetadata, NodeArg
from ort_lite.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from ort_lite.random_seed import set_seed
from ort_lite.registered_libraries import (
    register_execution_provider_library,
    unregister_execution_provider_library,
)
from ort_lite.session import InferenceSession
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
    RuntimeException,
)

__all__ = [
    "OrtDeviceEpIncompatibilityReason",
    "get_hardware_device_ep_incompatibility_details",
    "OrtExecutionProviderDevicePolicy",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "set_seed",
    "register_execution_provider_library",
    "unregister_execution_provider_library",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
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
    "OrtEpDevice",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "get_available_providers",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_ep_devices",
    "get_hardware_devices",
    "get_model_compatibility_for_ep_devices",
]
