"""The OpenVINO execution provider."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from ctx_formats.errors import FormatError, Reason
from ctx_formats.onnx_model import DataType
from eps.openvino.options import import_config, weightless_config
from eps.openvino.payload.blob_header import (
    EMPTY,
    THREADS,
    read_positions,
    read_requirements,
    split_trailer,
    write_trailer,
)
from eps.openvino.payload.identity import (
    compatibility_json,
    info_identity,
    present_requirements,
    read_identity,
    requirement_identity,
)
from eps.openvino.payload.verdict import Verdicts
from eps.openvino.sdk.runtime_choice import Sdk
from eps.openvino.sdk_errors import SDK_ERRORS, openvino_errors, sdk_text
from ort_lite.ep import (
    TRUE_TEXTS,
    Capability,
    CompiledPartition,
    EPFail,
    ExecutionProvider,
    GraphView,
    InvalidArgument,
    InvalidGraph,
    StartupHints,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import openvino

    from ctx_formats.identity import HardwareIdentity
    from eps.openvino.compile.known_shapes import KnownShapes
    from eps.openvino.memory import OpenVINOMemory
    from eps.openvino.options import OpenVINOOptions
    from eps.openvino.partition import OpenVINOPartition
    from eps.openvino.sdk.runtime import Runtime
    from eps.openvino.support.npu_table import NpuTable
    from eps.openvino.support.table import SupportTable
    from ort_lite.ep import (
        Compatibility,
        DeviceMemory,
        FusedNode,
        Graph,
        PartitionIo,
        PlacementCosts,
        WeightsFile,
        WeightsSink,
    )

MODULES_AFTER_IMPORT = (
    "ort_lite.ep.ports",
    "eps.openvino.partition",
    "eps.openvino.sdk.c_request",
)


class OpenVINOExecutionProvider(ExecutionProvider):
    """One OpenVINO device; compiles partitions, keeps them as blobs, reloads them."""

    name: ClassVar[str] = "OpenVINOExecutionProvider"
    survives_fork: ClassVar[bool] = False
    widened_types = frozenset((DataType.BFLOAT16,))

    def __init__(self, options: OpenVINOOptions) -> None:
        """Open the device, or the compiler for one that is not here (`npu_platform`).

        Raises:
            EPFail: It is not there.
        """
        self.options = options
        if options.kind == "CPU":  # docs/adr/0065-halves-on-openvinos-cpu.md
            self.widened_types |= {DataType.FLOAT16}
        if options.device == "CPU":  # eps/openvino/support/loops.py
            self.whole_bodies = frozenset(("Loop",))
        self._sdk = Sdk(options)
        self._known_shapes: KnownShapes | None = None
        runtime = self._sdk.runtime
        if runtime.without_lock:
            self.startup_hints = StartupHints(MODULES_AFTER_IMPORT)
        if options.npu_platform:
            from eps.openvino.compile.offline import offline_identity  # noqa: PLC0415 - lazy: reload

            core = self._sdk.core()
            self._identity = offline_identity(core, options.npu_platform, runtime.version)
        else:
            self._identity = read_identity(runtime, options.device)
        if options.load_config:
            _check_load_config(self._sdk.core(), options)
        sdk = self._sdk

        def ask() -> str:  # not a method: a circle would leave the provider to the collector
            core = sdk.core()
            from ort_lite.ep import uncut  # noqa: PLC0415 - lazy: reload

            with uncut:
                return present_requirements(core, options)

        self._verdicts = Verdicts(ask, options, self._identity)

    @property
    def identity(self) -> HardwareIdentity:
        """The device, this OpenVINO build, and what blobs made here require."""
        return self._verdicts.identity

    @property
    def quick_identity(self) -> HardwareIdentity:
        """The identity without the requirement text, which takes a compile to learn."""
        return self._identity

    def get_capability(self, view: GraphView) -> Capability:
        """Nodes that the table says OpenVINO computes right; conversion comes at compile."""
        from eps.openvino.support.offer import capability  # noqa: PLC0415 - lazy: reload

        self._learn_shapes(view.graph)
        kind, ieee = self.options.kind, self.options.ieee
        npu, exact = self._npu_table(), kind == "CPU"
        return capability(view, self._table, ieee=ieee, npu=npu, exact=exact)

    def _npu_table(self) -> NpuTable | None:
        """Operators that the NPU's compiler accepts; None for other devices."""
        if self.options.kind != "NPU":
            return None
        from eps.openvino.support.npu_table import load_npu_table  # noqa: PLC0415 - lazy: rare

        return load_npu_table(self._identity.sdk_version, self._identity.architecture)

    def _learn_shapes(self, graph: Graph) -> None:
        """Infer the shapes inside a model from `reshape_input`, for a device that needs them."""
        if self.options.needs_static_shapes and not graph.is_body:
            from eps.openvino.compile.known_shapes import learn_shapes  # noqa: PLC0415 - lazy: rare

            self._known_shapes = learn_shapes(graph, self.options.reshape)

    @property
    def memory(self) -> DeviceMemory | None:
        """The memory of its device, see SupportsDeviceMemory; None for the CPU and groups."""
        find_memory = self._memory_finder()
        return None if find_memory is None else find_memory()

    def _memory_finder(self) -> Callable[[], OpenVINOMemory] | None:
        device = self.options.device
        if device == "CPU" or self.options.npu_platform:
            return None
        from eps.openvino.partition import memory_finder  # noqa: PLC0415 - lazy: reload

        return memory_finder(self._sdk.core(), device)

    def placement_costs(self) -> PlacementCosts:
        """Those of the device; of a group, those of the first."""
        from eps.openvino.placement_costs import costs_of  # noqa: PLC0415 - lazy: reload

        return costs_of(self.options.kind)

    def missing_option(self, recorded: Mapping[str, str]) -> str:
        """`ieee_semantics=true`, where this session has it and a payload was made without."""
        made_with = recorded.get("ieee_semantics", "false")
        return "ieee_semantics=true" if self.options.ieee and made_with not in TRUE_TEXTS else ""

    @cached_property
    def _table(self) -> SupportTable:
        from eps.openvino.support.table import load_table  # noqa: PLC0415 - lazy: reload

        return load_table(self._identity.sdk_version)

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        """Convert and compile each partition."""
        from eps.openvino.compile.compile_partition import compile_partition  # noqa: PLC0415 - lazy: reload

        core = self._sdk.core()
        from eps.openvino.compile.known_shapes import KnownShapes  # noqa: PLC0415 - lazy: reload
        from eps.openvino.compile.lighter_calls import lighten  # noqa: PLC0415 - lazy: reload

        options, known = self.options, self._known_shapes or KnownShapes()
        return [
            lighten(
                compile_partition(core, options, self._verdicts, one, known),
                one.graph,
                self._sdk,
                options,
            )
            for one in fused
        ]

    def export_model(self, compiled: CompiledPartition, out: BinaryIO) -> None:
        """Write OpenVINO's blob to `out`."""
        from eps.openvino.compile.offline import OfflinePartition  # noqa: PLC0415 - lazy: reload
        from eps.openvino.partition import OpenVINOPartition  # noqa: PLC0415 - lazy: reload

        assert isinstance(compiled, OpenVINOPartition | OfflinePartition), (
            "the core gives back what compile gave"
        )
        group = self.options.device.partition(":")[0]
        if group in ("AUTO", "MULTI"):
            raise EPFail(
                f"what OpenVINO compiled for {self.options.device} cannot be kept; name one "
                f"device, for example device_type={self.options.kind}"
            )
        assert compiled.model is not None, "the core exports before it releases"
        with openvino_errors(f"exporting {compiled.name}"):
            compiled.model.export(out)
        if isinstance(compiled, OpenVINOPartition):
            write_trailer(out, compiled.settings)

    def import_model(self, payload: memoryview, io: PartitionIo) -> CompiledPartition:
        """Import a blob without copying it; the result holds `payload`.

        Raises:
            InvalidGraph: It was built for another OpenVINO or CPU, for another graph,
                OpenVINO refuses it, or this EP only compiles for a device that is not here.
        """
        if self.options.npu_platform:
            raise InvalidGraph(
                f"npu_platform={self.options.npu_platform} compiles without the NPU and loads "
                f"nothing; leave the option out (reason: {Reason.DEVICE_MISSING})",
                reason=Reason.DEVICE_MISSING,
                present=self._identity,
                hint="load the context without npu_platform on a machine with the NPU",
            )
        blob, settings = split_trailer(payload)
        config = import_config(self.options, one_thread=self._is_on_one_thread(settings))
        runtime = self._sdk.importer(blob, config)
        return self._import(runtime, blob, io, config, settings)

    def _is_on_one_thread(self, settings: Mapping[str, str]) -> bool:
        """Whether a payload with these settings runs in the caller's thread in this session."""
        return settings.get(THREADS) == "1" and self.options.leaves_threads_open

    def export_shared(
        self, compiled: CompiledPartition, weights: WeightsSink, out: BinaryIO
    ) -> bool:
        """Write OpenVINO's blob without the constants that go to `weights`; on CPU alone."""
        from eps.openvino.partition import OpenVINOPartition  # noqa: PLC0415 - lazy: reload
        from eps.openvino.payload.shared_weights import weightless_blob  # noqa: PLC0415 - lazy: rare

        if self.options.device != "CPU" or not isinstance(compiled, OpenVINOPartition):
            return False

        if compiled.source is None:
            return False
        blob = weightless_blob(self._sdk.core(), compiled.source, self.options, weights)
        if blob is None:
            return False
        out.write(blob)
        write_trailer(out, compiled.settings)
        return True

    def import_shared(
        self, payload: memoryview, weights: WeightsFile, io: PartitionIo
    ) -> CompiledPartition:
        """Import a blob whose constants are in a file, which OpenVINO maps; as `import_model`."""
        blob, settings = split_trailer(payload)
        one_thread = self._is_on_one_thread(settings)
        with weights.lend_path() as lent:
            config = weightless_config(self.options, lent.path, one_thread=one_thread)
            runtime = self._sdk.binding()
            partition = self._import(runtime, blob, io, config, settings)
            lent.owner = partition.model
        return partition

    def _import(
        self,
        runtime: Runtime,
        payload: memoryview,
        io: PartitionIo,
        config: Mapping[str, object],
        settings: Mapping[str, str],
    ) -> OpenVINOPartition:
        requirements = self._requirements_of(payload)
        try:
            model = runtime.import_model(payload, self.options.device, config)
        except SDK_ERRORS as exc:
            known = self._verdicts.explain_rejection(requirements)
            if known is not None:
                raise known from exc
            raise InvalidGraph(
                f"OpenVINO {self._identity.sdk_version} on {self.options.device} refuses the "
                f"payload: {sdk_text(exc)} (reason: {Reason.VENDOR_REJECTED})",
                reason=Reason.VENDOR_REJECTED,
                present=self._identity,
            ) from exc
        from eps.openvino.partition import OpenVINOPartition  # noqa: PLC0415 - lazy: reload
        from ort_lite.ep import import_order  # noqa: PLC0415 - lazy: reload

        order = import_order(io.inputs, model.inputs), import_order(io.outputs, model.outputs)
        find_memory = self._memory_finder()
        partition = OpenVINOPartition(
            model, "an imported partition", order, find_memory=find_memory
        )
        partition.one_thread = self._is_on_one_thread(settings)
        partition.empty_inputs = read_positions(settings.get(EMPTY, ""), len(io.inputs))
        return partition

    def _requirements_of(self, payload: memoryview) -> str:
        """The payload's requirement text, its OpenVINO version being this one."""
        recorded = _read_recorded(payload)
        self._verdicts.require_version(recorded)
        return recorded

    def check_compatibility(self, recorded: HardwareIdentity) -> Compatibility:
        """The verdict on a recorded identity."""
        return self._verdicts.compare(recorded)

    def identity_of_payload(self, payload: memoryview) -> HardwareIdentity:
        """The requirement text at the start of a blob.

        Raises:
            InvalidGraph: A damaged one.
        """
        return requirement_identity(_read_recorded(payload))

    def identity_of_info(self, info: str) -> HardwareIdentity | None:
        """The requirement text in the JSON of ONNX Runtime's OpenVINO EP."""
        return info_identity(info)

    def compatibility_info(self) -> str:
        """The JSON of ONNX Runtime's OpenVINO EP, so that its tools read our files."""
        return compatibility_json(self.identity)

    def release(self) -> None:
        """Release the SDK; compiled partitions keep working."""
        self._sdk.release()


def _read_recorded(payload: memoryview) -> str:
    """A payload's requirement text.

    Raises:
        InvalidGraph: A damaged one.
    """
    try:
        return read_requirements(payload)
    except FormatError as exc:
        raise InvalidGraph(
            f"the payload is not an OpenVINO blob: {exc} (reason: {exc.reason})", reason=exc.reason
        ) from exc


def _check_load_config(core: openvino.Core, options: OpenVINOOptions) -> None:
    """Find a property that the device does not know before it looks like a model's fault.

    Raises:
        InvalidArgument: `load_config` has one.
    """
    try:
        core.set_property(options.device.partition(":")[0], dict(options.load_config))
    except SDK_ERRORS as exc:
        raise InvalidArgument(f"load_config: OpenVINO says: {sdk_text(exc)}") from exc
