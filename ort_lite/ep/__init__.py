"""Everything that the author of an execution provider needs of ort_lite.

A factory opens the provider; an entry point of the group `ort_lite.execution_providers` names it.

    class DoublingPartition(CompiledPartition):
        def run(self, inputs):
            return [inputs[0] * 2]

        def release(self): ...

    class DoublingExecutionProvider(ExecutionProvider):
        name = "DoublingExecutionProvider"
        identity = HardwareIdentity(device="CPU")  # of ctx_formats.identity

        def get_capability(self, view):
            nodes = view.graph.nodes
            doubles = frozenset(i for i in view.candidates if nodes[i].op_type == "Double")
            return Capability(doubles, dict.fromkeys(view.candidates - doubles, "not a Double"))

        def compile(self, fused):
            return [DoublingPartition() for _ in fused]

    class Factory:
        name, options = "DoublingExecutionProvider", {}

        def probe(self):
            identity = DoublingExecutionProvider.identity
            device = DeviceInfo(name="CPU", kind="CPU", description="numpy", identity=identity)
            return Probe((device,))

        def create(self, options):
            return DoublingExecutionProvider()

    FACTORY = Factory()

An ability that only some providers have is a protocol `Supports*`, held by having its members.
docs/writing_an_ep.md builds a provider step by step, and `ort_lite.testing.EpConformance` tests it.
Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ort_lite.cpu_baseline import baseline_problem
    from ort_lite.ep.factory import (
        TRUE_TEXTS,
        DeviceInfo,
        EpFactory,
        Probe,
        SupportsEarlyLoading,
        SupportsMissingReason,
        SupportsThreadsOption,
        SupportsUnknownOptions,
        read_choice,
        read_count,
        read_flag,
    )
    from ort_lite.ep.input_shapes import RESHAPE_INPUT, Bound, parse_shapes
    from ort_lite.ep.interface import (
        OPTIMAL,
        Capability,
        Compatibility,
        CompiledModelCompatibility,
        CompiledPartition,
        CompileRefused,
        ExecutionProvider,
        FusedNode,
        GraphView,
        NotInstalled,
        PartitionIo,
        Runnable,
        Shapes,
        StartupHints,
        SupportsCompileByShape,
        SupportsEpContext,
        SupportsMemorySharing,
        SupportsOptionPromises,
        SupportsPayloadIdentity,
        SupportsQuickIdentity,
        SupportsWeightSharing,
        Value,
        WeightsFile,
        WeightsSink,
        compare_identities,
        unsupported,
    )
    from ort_lite.ep.kernels import (
        Body,
        KernelCall,
        KernelDef,
        KernelFactory,
        KernelFn,
        KernelInfo,
        KernelRegistry,
        Match,
        SupportsKernelListing,
        SupportsKernels,
        attribute_value,
        kernel,
    )
    from ort_lite.ep.ports import Port, PortError, Ports, import_order, port_order
    from ort_lite.ep.sdk_libraries import CLibrary, Owned, load_early, package_folders
    from ort_lite.execution.random_seed import new_generator
    from ort_lite.execution.run_context import NodeLabel, NodeRun, RunContext, current_run
    from ort_lite.execution.slots import SlotProgram, SlotTable, number_slots
    from ort_lite.execution.sparse_values import OrtSparseFormat, SparseTensor
    from ort_lite.extension_module import load_extension
    from ort_lite.kernel_type_str import (
        ArgPlace,
        KernelTypeStrResolver,
        OpIdentifier,
        places_of_schema,
    )
    from ort_lite.model.graph import Graph
    from ort_lite.model.sparse_constants import dense_array
    from ort_lite.model.tensor_values import numpy_dtype, onnx_data_type, to_numpy, type_string
    from ort_lite.model.type_text import element_text, type_text
    from ort_lite.model_cache.user_folder import user_cache_folder
    from ort_lite.session_log import get_logger, verbose_level
    from ort_lite.shortages import remedy_of, start_helper
    from ort_lite.status import (
        DeviceReset,
        EPFail,
        Fail,
        InvalidArgument,
        InvalidGraph,
        NotImplemented,  # noqa: A004 - ONNX Runtime's public name
        OrtLiteError,
        RuntimeException,
    )
    from ort_lite.uncut_calls import uncut
    from ort_lite.version import VERSION

__all__ = [
    "ArgPlace",
    "Body",
    "Bound",
    "CLibrary",
    "Capability",
    "Compatibility",
    "CompileRefused",
    "CompiledModelCompatibility",
    "CompiledPartition",
    "DeviceInfo",
    "DeviceReset",
    "EPFail",
    "EpFactory",
    "ExecutionProvider",
    "Fail",
    "FusedNode",
    "Graph",
    "GraphView",
    "InvalidArgument",
    "InvalidGraph",
    "KernelCall",
    "KernelDef",
    "KernelFactory",
    "KernelFn",
    "KernelInfo",
    "KernelRegistry",
    "KernelTypeStrResolver",
    "Match",
    "NodeLabel",
    "NodeRun",
    "NotImplemented",
    "NotInstalled",
    "OPTIMAL",
    "OpIdentifier",
    "OrtLiteError",
    "OrtSparseFormat",
    "Owned",
    "PartitionIo",
    "Port",
    "PortError",
    "Ports",
    "Probe",
    "RESHAPE_INPUT",
    "RunContext",
    "Runnable",
    "RuntimeException",
    "Shapes",
    "SlotProgram",
    "SlotTable",
    "SparseTensor",
    "StartupHints",
    "SupportsCompileByShape",
    "SupportsEarlyLoading",
    "SupportsEpContext",
    "SupportsKernelListing",
    "SupportsKernels",
    "SupportsMemorySharing",
    "SupportsMissingReason",
    "SupportsOptionPromises",
    "SupportsPayloadIdentity",
    "SupportsQuickIdentity",
    "SupportsThreadsOption",
    "SupportsUnknownOptions",
    "SupportsWeightSharing",
    "TRUE_TEXTS",
    "VERSION",
    "Value",
    "WeightsFile",
    "WeightsSink",
    "attribute_value",
    "baseline_problem",
    "compare_identities",
    "current_run",
    "dense_array",
    "element_text",
    "get_logger",
    "import_order",
    "kernel",
    "load_early",
    "load_extension",
    "new_generator",
    "number_slots",
    "numpy_dtype",
    "onnx_data_type",
    "package_folders",
    "parse_shapes",
    "places_of_schema",
    "port_order",
    "read_choice",
    "read_count",
    "read_flag",
    "remedy_of",
    "start_helper",
    "to_numpy",
    "type_string",
    "type_text",
    "uncut",
    "unsupported",
    "user_cache_folder",
    "verbose_level",
]

_HOMES = {
    "ort_lite.cpu_baseline": ("baseline_problem",),
    "ort_lite.ep.factory": (
        "DeviceInfo",
        "EpFactory",
        "Probe",
        "SupportsEarlyLoading",
        "SupportsMissingReason",
        "SupportsThreadsOption",
        "SupportsUnknownOptions",
        "TRUE_TEXTS",
        "read_choice",
        "read_count",
        "read_flag",
    ),
    "ort_lite.ep.input_shapes": (
        "Bound",
        "RESHAPE_INPUT",
        "parse_shapes",
    ),
    "ort_lite.ep.interface": (
        "Capability",
        "Compatibility",
        "CompileRefused",
        "CompiledModelCompatibility",
        "CompiledPartition",
        "ExecutionProvider",
        "FusedNode",
        "GraphView",
        "NotInstalled",
        "OPTIMAL",
        "PartitionIo",
        "Runnable",
        "Shapes",
        "StartupHints",
        "SupportsCompileByShape",
        "SupportsEpContext",
        "SupportsMemorySharing",
        "SupportsOptionPromises",
        "SupportsPayloadIdentity",
        "SupportsQuickIdentity",
        "SupportsWeightSharing",
        "Value",
        "WeightsFile",
        "WeightsSink",
        "compare_identities",
        "unsupported",
    ),
    "ort_lite.ep.kernels": (
        "Body",
        "KernelCall",
        "KernelDef",
        "KernelFactory",
        "KernelFn",
        "KernelInfo",
        "KernelRegistry",
        "Match",
        "SupportsKernelListing",
        "SupportsKernels",
        "attribute_value",
        "kernel",
    ),
    "ort_lite.ep.ports": (
        "Port",
        "PortError",
        "Ports",
        "import_order",
        "port_order",
    ),
    "ort_lite.ep.sdk_libraries": (
        "CLibrary",
        "Owned",
        "load_early",
        "package_folders",
    ),
    "ort_lite.execution.random_seed": ("new_generator",),
    "ort_lite.execution.run_context": ("NodeLabel", "NodeRun", "RunContext", "current_run"),
    "ort_lite.execution.slots": ("SlotProgram", "SlotTable", "number_slots"),
    "ort_lite.execution.sparse_values": (
        "OrtSparseFormat",
        "SparseTensor",
    ),
    "ort_lite.extension_module": ("load_extension",),
    "ort_lite.kernel_type_str": (
        "ArgPlace",
        "KernelTypeStrResolver",
        "OpIdentifier",
        "places_of_schema",
    ),
    "ort_lite.model.graph": ("Graph",),
    "ort_lite.model.sparse_constants": ("dense_array",),
    "ort_lite.model.tensor_values": (
        "numpy_dtype",
        "onnx_data_type",
        "to_numpy",
        "type_string",
    ),
    "ort_lite.model.type_text": (
        "element_text",
        "type_text",
    ),
    "ort_lite.model_cache.user_folder": ("user_cache_folder",),
    "ort_lite.session_log": (
        "get_logger",
        "verbose_level",
    ),
    "ort_lite.shortages": (
        "remedy_of",
        "start_helper",
    ),
    "ort_lite.status": (
        "DeviceReset",
        "EPFail",
        "Fail",
        "InvalidArgument",
        "InvalidGraph",
        "NotImplemented",
        "OrtLiteError",
        "RuntimeException",
    ),
    "ort_lite.uncut_calls": ("uncut",),
    "ort_lite.version": ("VERSION",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import what `name` lives in (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ort_lite.ep' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
