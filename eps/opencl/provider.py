"""The OpenCL execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, ClassVar

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from eps.opencl.payload.format import ProgramPayload, ProgramVariant
from eps.opencl.payload.import_payload import (
    info_identity,
    info_text,
    judge_identity,
    open_payload,
    payload_identity,
    require_fit,
)
from eps.opencl.runtime.builder import Builder
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.device import find_devices, fitting_devices
from eps.opencl.runtime.identity import read_identity
from eps.opencl.runtime.partition import StaticPartition
from ort_lite.ep import (
    Capability,
    CompiledPartition,
    EPFail,
    ExecutionProvider,
    GraphView,
    InvalidGraph,
    StartupHints,
    get_logger,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.options import OpenCLOptions
    from eps.opencl.program_spec import ProgramSpec
    from eps.opencl.runtime.device import ListedDevice
    from eps.opencl.runtime.executable import Executable
    from eps.opencl.target import Target
    from ort_lite.ep import (
        Compatibility,
        DeviceFigures,
        DeviceMemory,
        FusedNode,
        Graph,
        PartitionIo,
        PlacementCosts,
        WeightsFile,
        WeightsSink,
    )

log = get_logger(__name__)


class OpenCLExecutionProvider(ExecutionProvider):
    """One OpenCL device; lowers, fuses and compiles partitions with kernels of its own."""

    name: ClassVar[str] = "OpenCLExecutionProvider"
    survives_fork: ClassVar[bool] = False
    startup_hints = StartupHints()
    widened_types = frozenset((DataType.FLOAT16, DataType.BFLOAT16))

    def __init__(self, options: OpenCLOptions) -> None:
        """Open the device.

        Raises:
            EPFail: It is not there.
        """
        self.options = options
        self._has_failed = False
        self._shares_arena = False
        devices = find_devices()
        if options.context or options.command_queue:
            from eps.opencl.runtime.user_context import devices_of_user  # noqa: PLC0415 - lazy: rare

            devices = tuple(devices_of_user(devices, options))
        self._fitting = fitting_devices(devices, options)
        self._open(_choose_device(self._fitting))

    def _open(self, listed: ListedDevice) -> None:
        self._device = listed
        self._target = _apply_options(describe_target(listed, self.options.templates), self.options)
        self._identity = read_identity(listed)
        self._builder: Builder | None = Builder(listed, self._target, self.options, self._identity)
        if self._shares_arena:
            self._builder.share_arena()

    def share_arena(self) -> None:
        """See SupportsSharedArena."""
        self._shares_arena = True
        self._require_builder().share_arena()

    @property
    def identity(self) -> HardwareIdentity:
        """Platform, device, driver, and the version of the code generator."""
        return self._identity

    def get_capability(self, view: GraphView) -> Capability:
        """Nodes that lower to kernels, tried one by one, on a device that passes its trial.

        Raises:
            EPFail: The options name a device, which does not.
        """
        offer = self._capability(view)
        if not offer.supported:
            return offer
        before = self._device
        problem = self._use_one_that_works()
        if problem:
            self._has_failed = True
            return Capability(
                frozenset(), {**offer.refused, **dict.fromkeys(offer.supported, problem)}
            )
        if self._device != before:
            offer = self._capability(view)
        self._require_builder().expect_compile(len(offer.supported))
        return offer

    def is_settled(self) -> bool:
        """Not where no device passes its trial: a driver may be there next time."""
        return not self._has_failed

    @property
    def memory(self) -> DeviceMemory:
        """The memory of its device; see SupportsDeviceMemory."""
        from eps.opencl.runtime.tensors import shared_memory  # noqa: PLC0415 - lazy: rare

        return shared_memory(self._require_builder().access)

    def device_figures(self) -> DeviceFigures:
        """See SupportsDeviceFigures: what this process has allocated in the device's context."""
        from ort_lite.ep import DeviceFigures  # noqa: PLC0415 - lazy: rare

        context = self._require_builder().access.context
        total = context.device.global_mem_size
        return DeviceFigures(live=context.allocated.live, peak=context.allocated.peak, total=total)

    def placement_costs(self) -> PlacementCosts:
        """Those of the device."""
        from eps.opencl.placement_costs import costs_of  # noqa: PLC0415 - lazy: reload

        return costs_of(self._device.kind)

    def _capability(self, view: GraphView) -> Capability:
        from eps.opencl.compile.capability import capability  # noqa: PLC0415 - lazy: reload

        return capability(view, self._target, self._require_builder().learn_sizes(view.graph))

    def _use_one_that_works(self) -> str:
        """Try the device, and where it fails the next that fits; why none works, or "".

        Raises:
            EPFail: None works, and the options name one.
        """
        from eps.opencl.trials.trial import problem_of  # noqa: PLC0415 - lazy: reload

        problems: list[str] = []
        for listed in (self._device, *(f for f in self._fitting if f != self._device)):
            problem = problem_of(listed)
            if not problem:
                if listed != self._device:
                    log.warning("%s is used, since %s", listed.label, "; ".join(problems))
                    self._open(listed)
                return ""
            problems.append(problem)
        if self.options.platform or self.options.device:
            raise EPFail(f"OpenCL: {'; '.join(problems)}")
        return f"OpenCL: {'; '.join(problems)}"

    def require_room(self, graphs: Sequence[Graph]) -> None:
        """See SupportsRoomCheck; what is compiled for it is not compiled again."""
        self._require_builder().require_room(graphs)

    def require_room_to_import(
        self, payloads: Sequence[tuple[memoryview, WeightsFile | None]]
    ) -> None:
        """See SupportsRoomCheck."""
        needs = []
        for data, weights in payloads:
            try:
                shared = None if weights is None else weights.data
                payload = open_payload(data, shared, self._target.alignment)
            except InvalidGraph:
                continue  # its import says what is wrong with it
            needs.append((payload, shared is not None))
        self._require_builder().require_room_to_import(needs)

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        """Compile and build each partition."""
        return [self._require_builder().compile_fused(one) for one in fused]

    def export_model(self, compiled: CompiledPartition, out: BinaryIO) -> None:
        """Write program binaries, source, weights and tables of launches to `out`."""
        from eps.opencl.payload.writer import write_payload  # noqa: PLC0415 - lazy: rare

        write_payload(self._payload(compiled), out)

    def export_updated(
        self, compiled: CompiledPartition, payload: memoryview, out: BinaryIO
    ) -> bool:
        """Write `payload` with the programs that `compiled` has compiled for new shapes since.

        The newest `max_variants` stay.

        Raises:
            InvalidGraph: It is not a whole payload of this device for free dimensions.
            EPFail: The driver gives no binary.
        """
        from eps.opencl.payload.writer import update_payload, write_payload  # noqa: PLC0415 - lazy: rare
        from eps.opencl.runtime.dynamic import DynamicPartition  # noqa: PLC0415 - lazy: rare

        assert isinstance(compiled, DynamicPartition), "no other partition meets new shapes"
        with compiled.taking_new_programs() as new:
            if not new:
                return False
            old = open_payload(payload, None, self._target.alignment)
            require_fit(old.identity, self._identity, rebuild=False)
            variants = [self._variant(n.held.executable, n.spec) for n in new.values()]
            most = self.options.max_variants
            write_payload(update_payload(old, variants, most), out)
        return True

    def import_model(self, payload: memoryview, io: PartitionIo) -> CompiledPartition:
        """Load what `export_model` wrote; nothing is built from source but with `rebuild`.

        Raises:
            InvalidGraph: It is damaged, for another graph, device or driver, or refused.
        """
        return self._import(payload, None, io)

    def export_shared(
        self, compiled: CompiledPartition, weights: WeightsSink, out: BinaryIO
    ) -> bool:
        """As `export_model`, large weights to the file of a session group."""
        from eps.opencl.payload.writer import write_payload  # noqa: PLC0415 - lazy: rare

        write_payload(self._payload(compiled), out, weights)
        return True

    def import_shared(
        self, payload: memoryview, weights: WeightsFile, io: PartitionIo
    ) -> CompiledPartition:
        """As `import_model`; weights stay in the mapped file where the device can read them."""
        return self._import(payload, weights.data, io)

    def _payload(self, compiled: CompiledPartition) -> ProgramPayload:
        from eps.opencl.payload.dynamic_payload import store_graph  # noqa: PLC0415 - lazy: rare
        from eps.opencl.runtime.dynamic import DynamicPartition  # noqa: PLC0415 - lazy: rare

        if isinstance(compiled, DynamicPartition):
            custom = self._target.custom
            variants = tuple(self._variant(one, one.spec) for one in compiled.executables())
            return ProgramPayload(
                self._identity,
                variants,
                store_graph(compiled.graph, whole=not compiled.is_closed, custom=custom),
            )
        assert isinstance(compiled, StaticPartition), "the core gives back what compile gave"
        executable = compiled.executable
        return ProgramPayload(self._identity, (self._variant(executable, executable.spec),))

    def _variant(self, executable: Executable, spec: ProgramSpec) -> ProgramVariant:
        if self._target.late_binaries:
            executable.warm()
        return ProgramVariant(spec, tuple(map(memoryview, executable.binaries())))

    def _import(
        self, data: memoryview, shared: memoryview | None, io: PartitionIo
    ) -> CompiledPartition:
        builder = self._require_builder()
        payload = open_payload(data, shared, self._target.alignment)
        own = require_fit(payload.identity, self._identity, rebuild=self.options.rebuild)
        return builder.import_partition(payload, io, own=own, shared=shared is not None)

    def check_compatibility(self, recorded: HardwareIdentity) -> Compatibility:
        """The verdict on a recorded identity."""
        return judge_identity(recorded, self._identity, rebuild=self.options.rebuild)

    def compatibility_info(self) -> str:
        """The identity as JSON on one line."""
        return info_text(self._identity)

    def identity_of_payload(self, payload: memoryview) -> HardwareIdentity:
        """The identity in the payload's header.

        Raises:
            InvalidGraph: A damaged one.
        """
        return payload_identity(payload)

    def identity_of_info(self, info: str) -> HardwareIdentity | None:
        """The identity in a text that `compatibility_info` wrote; None for another text."""
        return info_identity(info)

    def release(self) -> None:
        """Let go of the device; what was compiled goes on working."""
        self._builder = None

    def _require_builder(self) -> Builder:
        if self._builder is None:
            raise EPFail(f"{self.name} is used after it was released")
        return self._builder


def _choose_device(fitting: Sequence[ListedDevice]) -> ListedDevice:
    """The best device that no earlier trial has found failing; nothing is tried for it."""
    if len(fitting) == 1:
        return fitting[0]
    from eps.opencl.trials.failures import nothing_failed  # noqa: PLC0415 - lazy: reload

    if nothing_failed():
        return fitting[0]
    from eps.opencl.trials.trial import recall_problem  # noqa: PLC0415 - lazy: rare

    return next((listed for listed in fitting if not recall_problem(listed)), fitting[0])


def _apply_options(target: Target, options: OpenCLOptions) -> Target:
    """The target with the options' float type, operators and choice about Winograd's transforms."""
    half = options.precision == "fp16"
    winograd = target.winograd and options.winograd and not half
    builds = min(target.builds_at_once, options.build_processes)
    return replace(
        target, half=half, winograd=winograd, custom=options.custom, builds_at_once=builds
    )
