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

_HOMES = {
    "ort_lite.child_module": (
        "describe_exit",
        "flatten_text",
        "run_module",
        "start_module",
    ),
    "ort_lite.cpu_baseline": ("baseline_problem",),
    "ort_lite.processor": ("count_usable_cpus", "machine_name"),
    "ort_lite.ep.body_runs": ("SupportsBodyRuns",),
    "ort_lite.ep.device_streams": ("DeviceStream", "SupportsStreams"),
    "ort_lite.ep.device_tensors": (
        "CopyCounts",
        "DeviceMemory",
        "DeviceTensor",
        "LentMemory",
        "MemoryPlace",
        "Place",
        "SupportsBoundRuns",
        "SupportsDeviceMemory",
        "SupportsForeignTensors",
        "SupportsMemoryLookup",
    ),
    "ort_lite.ep.factory": (
        "DeviceInfo",
        "EpFactory",
        "Probe",
        "SupportsEarlyLoading",
        "SupportsInstallationFields",
        "SupportsHandleOptions",
        "SupportsLeastCosts",
        "SupportsMissingReason",
        "SupportsRequirementText",
        "SupportsStepCosts",
        "SupportsThreadsOption",
        "SupportsUnknownOptions",
        "TRUE_TEXTS",
        "read_choice",
        "read_count",
        "read_flag",
    ),
    "ort_lite.ep.input_shapes": ("Bound", "RESHAPE_INPUT", "parse_shapes"),
    "ort_lite.ep.installation": ("pick_variables", "stamp_files"),
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
    "ort_lite.ep.memory_use": (
        "ByteCounter",
        "DeviceFigures",
        "MemoryUse",
        "SupportsDeviceFigures",
        "SupportsMemoryReport",
        "SupportsRoomCheck",
        "SupportsSharedArena",
    ),
    "ort_lite.ep.other_answers": (
        "OtherAnswers",
        "SupportsOtherAnswers",
        "SupportsOtherAnswersReport",
    ),
    "ort_lite.ep.placement_costs": (
        "ASSUMED_GPU_COSTS",
        "RESET_BEFORE",
        "PlacementCosts",
        "StepCosts",
        "find_least_costs",
    ),
    "ort_lite.ep.ports": ("Port", "PortError", "Ports", "import_order", "port_order"),
    "ort_lite.ep.sdk_libraries": ("CLibrary", "Owned", "load_early", "package_folders"),
    "ort_lite.execution.random_seed": ("new_generator",),
    "ort_lite.execution.run_context": ("NodeLabel", "NodeRun", "RunContext", "current_run"),
    "ort_lite.execution.slots": (
        "FIRST_INPUT",
        "SlotProgram",
        "SlotStep",
        "SlotTable",
        "number_slots",
    ),
    "ort_lite.execution.sparse_values": ("OrtSparseFormat", "SparseTensor"),
    "ort_lite.extension_module": ("load_extension",),
    "ort_lite.kernel_type_str": (
        "ArgPlace",
        "KernelTypeStrResolver",
        "OpIdentifier",
        "places_of_schema",
    ),
    "ort_lite.model.graph": ("Graph",),
    "ort_lite.model.sparse_constants": ("dense_array",),
    "ort_lite.model.computed_shapes": ("may_contain_zero",),
    "ort_lite.model.static_shapes": ("infer_static_shapes",),
    "ort_lite.model.tensor_values": ("numpy_dtype", "onnx_data_type", "to_numpy", "type_string"),
    "ort_lite.model.type_text": ("element_text", "type_text"),
    "ort_lite.model_cache.user_folder": ("user_cache_folder",),
    "ort_lite.planning.node_work": ("estimate_run",),
    "ort_lite.session_log": ("get_logger", "verbose_level"),
    "ort_lite.shortages": ("remedy_of", "start_helper"),
    "ort_lite.status": (
        "BindingError",
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

if TYPE_CHECKING:
    from ort_lite.child_module import describe_exit as describe_exit
    from ort_lite.child_module import flatten_text as flatten_text
    from ort_lite.child_module import run_module as run_module
    from ort_lite.child_module import start_module as start_module
    from ort_lite.cpu_baseline import baseline_problem as baseline_problem
    from ort_lite.ep.body_runs import SupportsBodyRuns as SupportsBodyRuns
    from ort_lite.ep.device_streams import DeviceStream as DeviceStream
    from ort_lite.ep.device_streams import SupportsStreams as SupportsStreams
    from ort_lite.ep.device_tensors import CopyCounts as CopyCounts
    from ort_lite.ep.device_tensors import DeviceMemory as DeviceMemory
    from ort_lite.ep.device_tensors import DeviceTensor as DeviceTensor
    from ort_lite.ep.device_tensors import LentMemory as LentMemory
    from ort_lite.ep.device_tensors import MemoryPlace as MemoryPlace
    from ort_lite.ep.device_tensors import Place as Place
    from ort_lite.ep.device_tensors import SupportsBoundRuns as SupportsBoundRuns
    from ort_lite.ep.device_tensors import SupportsDeviceMemory as SupportsDeviceMemory
    from ort_lite.ep.device_tensors import SupportsForeignTensors as SupportsForeignTensors
    from ort_lite.ep.device_tensors import SupportsMemoryLookup as SupportsMemoryLookup
    from ort_lite.ep.factory import TRUE_TEXTS as TRUE_TEXTS
    from ort_lite.ep.factory import DeviceInfo as DeviceInfo
    from ort_lite.ep.factory import EpFactory as EpFactory
    from ort_lite.ep.factory import Probe as Probe
    from ort_lite.ep.factory import SupportsEarlyLoading as SupportsEarlyLoading
    from ort_lite.ep.factory import SupportsHandleOptions as SupportsHandleOptions
    from ort_lite.ep.factory import SupportsInstallationFields as SupportsInstallationFields
    from ort_lite.ep.factory import SupportsLeastCosts as SupportsLeastCosts
    from ort_lite.ep.factory import SupportsMissingReason as SupportsMissingReason
    from ort_lite.ep.factory import SupportsRequirementText as SupportsRequirementText
    from ort_lite.ep.factory import SupportsStepCosts as SupportsStepCosts
    from ort_lite.ep.factory import SupportsThreadsOption as SupportsThreadsOption
    from ort_lite.ep.factory import SupportsUnknownOptions as SupportsUnknownOptions
    from ort_lite.ep.factory import read_choice as read_choice
    from ort_lite.ep.factory import read_count as read_count
    from ort_lite.ep.factory import read_flag as read_flag
    from ort_lite.ep.input_shapes import RESHAPE_INPUT as RESHAPE_INPUT
    from ort_lite.ep.input_shapes import Bound as Bound
    from ort_lite.ep.input_shapes import parse_shapes as parse_shapes
    from ort_lite.ep.installation import pick_variables as pick_variables
    from ort_lite.ep.installation import stamp_files as stamp_files
    from ort_lite.ep.interface import OPTIMAL as OPTIMAL
    from ort_lite.ep.interface import Capability as Capability
    from ort_lite.ep.interface import Compatibility as Compatibility
    from ort_lite.ep.interface import CompiledModelCompatibility as CompiledModelCompatibility
    from ort_lite.ep.interface import CompiledPartition as CompiledPartition
    from ort_lite.ep.interface import CompileRefused as CompileRefused
    from ort_lite.ep.interface import ExecutionProvider as ExecutionProvider
    from ort_lite.ep.interface import FusedNode as FusedNode
    from ort_lite.ep.interface import GraphView as GraphView
    from ort_lite.ep.interface import NotInstalled as NotInstalled
    from ort_lite.ep.interface import PartitionIo as PartitionIo
    from ort_lite.ep.interface import Runnable as Runnable
    from ort_lite.ep.interface import Shapes as Shapes
    from ort_lite.ep.interface import StartupHints as StartupHints
    from ort_lite.ep.interface import SupportsCompileByShape as SupportsCompileByShape
    from ort_lite.ep.interface import SupportsEpContext as SupportsEpContext
    from ort_lite.ep.interface import SupportsMemorySharing as SupportsMemorySharing
    from ort_lite.ep.interface import SupportsOptionPromises as SupportsOptionPromises
    from ort_lite.ep.interface import SupportsPayloadIdentity as SupportsPayloadIdentity
    from ort_lite.ep.interface import SupportsQuickIdentity as SupportsQuickIdentity
    from ort_lite.ep.interface import SupportsWeightSharing as SupportsWeightSharing
    from ort_lite.ep.interface import Value as Value
    from ort_lite.ep.interface import WeightsFile as WeightsFile
    from ort_lite.ep.interface import WeightsSink as WeightsSink
    from ort_lite.ep.interface import compare_identities as compare_identities
    from ort_lite.ep.interface import unsupported as unsupported
    from ort_lite.ep.kernels import Body as Body
    from ort_lite.ep.kernels import KernelCall as KernelCall
    from ort_lite.ep.kernels import KernelDef as KernelDef
    from ort_lite.ep.kernels import KernelFactory as KernelFactory
    from ort_lite.ep.kernels import KernelFn as KernelFn
    from ort_lite.ep.kernels import KernelInfo as KernelInfo
    from ort_lite.ep.kernels import KernelRegistry as KernelRegistry
    from ort_lite.ep.kernels import Match as Match
    from ort_lite.ep.kernels import SupportsKernelListing as SupportsKernelListing
    from ort_lite.ep.kernels import SupportsKernels as SupportsKernels
    from ort_lite.ep.kernels import attribute_value as attribute_value
    from ort_lite.ep.kernels import kernel as kernel
    from ort_lite.ep.memory_use import ByteCounter as ByteCounter
    from ort_lite.ep.memory_use import DeviceFigures as DeviceFigures
    from ort_lite.ep.memory_use import MemoryUse as MemoryUse
    from ort_lite.ep.memory_use import SupportsDeviceFigures as SupportsDeviceFigures
    from ort_lite.ep.memory_use import SupportsMemoryReport as SupportsMemoryReport
    from ort_lite.ep.memory_use import SupportsRoomCheck as SupportsRoomCheck
    from ort_lite.ep.memory_use import SupportsSharedArena as SupportsSharedArena
    from ort_lite.ep.other_answers import OtherAnswers as OtherAnswers
    from ort_lite.ep.other_answers import SupportsOtherAnswers as SupportsOtherAnswers
    from ort_lite.ep.other_answers import SupportsOtherAnswersReport as SupportsOtherAnswersReport
    from ort_lite.ep.placement_costs import ASSUMED_GPU_COSTS as ASSUMED_GPU_COSTS
    from ort_lite.ep.placement_costs import RESET_BEFORE as RESET_BEFORE
    from ort_lite.ep.placement_costs import PlacementCosts as PlacementCosts
    from ort_lite.ep.placement_costs import StepCosts as StepCosts
    from ort_lite.ep.placement_costs import find_least_costs as find_least_costs
    from ort_lite.ep.ports import Port as Port
    from ort_lite.ep.ports import PortError as PortError
    from ort_lite.ep.ports import Ports as Ports
    from ort_lite.ep.ports import import_order as import_order
    from ort_lite.ep.ports import port_order as port_order
    from ort_lite.ep.sdk_libraries import CLibrary as CLibrary
    from ort_lite.ep.sdk_libraries import Owned as Owned
    from ort_lite.ep.sdk_libraries import load_early as load_early
    from ort_lite.ep.sdk_libraries import package_folders as package_folders
    from ort_lite.execution.random_seed import new_generator as new_generator
    from ort_lite.execution.run_context import NodeLabel as NodeLabel
    from ort_lite.execution.run_context import NodeRun as NodeRun
    from ort_lite.execution.run_context import RunContext as RunContext
    from ort_lite.execution.run_context import current_run as current_run
    from ort_lite.execution.slots import FIRST_INPUT as FIRST_INPUT
    from ort_lite.execution.slots import SlotProgram as SlotProgram
    from ort_lite.execution.slots import SlotStep as SlotStep
    from ort_lite.execution.slots import SlotTable as SlotTable
    from ort_lite.execution.slots import number_slots as number_slots
    from ort_lite.execution.sparse_values import OrtSparseFormat as OrtSparseFormat
    from ort_lite.execution.sparse_values import SparseTensor as SparseTensor
    from ort_lite.extension_module import load_extension as load_extension
    from ort_lite.kernel_type_str import ArgPlace as ArgPlace
    from ort_lite.kernel_type_str import KernelTypeStrResolver as KernelTypeStrResolver
    from ort_lite.kernel_type_str import OpIdentifier as OpIdentifier
    from ort_lite.kernel_type_str import places_of_schema as places_of_schema
    from ort_lite.model.computed_shapes import may_contain_zero as may_contain_zero
    from ort_lite.model.graph import Graph as Graph
    from ort_lite.model.sparse_constants import dense_array as dense_array
    from ort_lite.model.static_shapes import infer_static_shapes as infer_static_shapes
    from ort_lite.model.tensor_values import numpy_dtype as numpy_dtype
    from ort_lite.model.tensor_values import onnx_data_type as onnx_data_type
    from ort_lite.model.tensor_values import to_numpy as to_numpy
    from ort_lite.model.tensor_values import type_string as type_string
    from ort_lite.model.type_text import element_text as element_text
    from ort_lite.model.type_text import type_text as type_text
    from ort_lite.model_cache.user_folder import user_cache_folder as user_cache_folder
    from ort_lite.planning.node_work import estimate_run as estimate_run
    from ort_lite.processor import count_usable_cpus as count_usable_cpus
    from ort_lite.processor import machine_name as machine_name
    from ort_lite.session_log import get_logger as get_logger
    from ort_lite.session_log import verbose_level as verbose_level
    from ort_lite.shortages import remedy_of as remedy_of
    from ort_lite.shortages import start_helper as start_helper
    from ort_lite.status import BindingError as BindingError
    from ort_lite.status import DeviceReset as DeviceReset
    from ort_lite.status import EPFail as EPFail
    from ort_lite.status import Fail as Fail
    from ort_lite.status import InvalidArgument as InvalidArgument
    from ort_lite.status import InvalidGraph as InvalidGraph
    from ort_lite.status import NotImplemented as NotImplemented  # noqa: A004 - ONNX Runtime's public name
    from ort_lite.status import OrtLiteError as OrtLiteError
    from ort_lite.status import RuntimeException as RuntimeException
    from ort_lite.uncut_calls import uncut as uncut
    from ort_lite.version import VERSION as VERSION

    __all__: list[str]
else:
    __all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> object:
    """Import what `name` lives in (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ort_lite.ep' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """Sorted public names, for `dir(ort_lite.ep)`."""
    return sorted(_HOME_OF)
