"""An execution provider (EP): what every one implements, and abilities that only some have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol, runtime_checkable

from ctx_formats.errors import Reason
from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ctx_formats.identity import FieldDifference, HardwareIdentity
    from ctx_formats.onnx_model import ValueInfo
    from ctx_formats.sealed_file import LentPath
    from ort_lite.ep.placement_costs import PlacementCosts
    from ort_lite.model.graph import Graph

Value = Any
"""A run-time value: a numpy array, a list of values (sequence), a dict (map), or None."""

Shapes = tuple[tuple[int, ...], ...]
"""The shapes of a run's inputs, in their order."""


class OrtCompiledModelCompatibility(IntEnum):
    """OrtCompiledModelCompatibility of onnxruntime_c_api.h."""

    __str__ = Enum.__str__  # as the binding's, where IntEnum gives the number
    __format__ = Enum.__format__

    EP_NOT_APPLICABLE = 0
    EP_SUPPORTED_OPTIMAL = 1
    EP_SUPPORTED_PREFER_RECOMPILATION = 2
    EP_UNSUPPORTED = 3


CompiledModelCompatibility = OrtCompiledModelCompatibility
"""The same without onnxruntime's prefix."""


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a payload may run here, and why not.

    Attributes:
        reason: Of the closed list, where a session refuses the payload: always with
            EP_UNSUPPORTED, else where it first needs what `hint` says.
        message: What it was built with and what is here, one line; "" when optimal.
        hint: What lets the payload run, besides compiling the model again; "" for nothing.
    """

    verdict: CompiledModelCompatibility
    reason: Reason | None = None
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class GraphView:
    """The node or graph that an EP is asked about.

    Attributes:
        graph: The whole graph.
        candidates: Indices of the nodes that no EP before this one has taken.
    """

    graph: Graph
    candidates: frozenset[int]


@dataclass(frozen=True, slots=True)
class Capability:
    """An EP's answer: which nodes it would run, and why not the others.

    Attributes:
        supported: Indices that the EP would run, alone or together.
        refused: For every other candidate the reason, one line for a person.
    """

    supported: frozenset[int]
    refused: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIo:
    """Inputs and outputs of a partition, in the order in which `run` takes and gives them."""

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]


class Runnable(Protocol):
    """A prepared graph or partition; many threads may run it at once."""

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, in order; they own their memory and are not reused."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedNode:
    """A partition that an EP is to compile.

    Attributes:
        name: `<EP>_<metadef>_<id>`; the same model gives the same name on every machine.
        graph: The partition as a graph of its own.
        bodies: For an EP that runs control flow through the session: (node index in
            `graph`, attribute name) to the prepared body. Its `run` takes the body's inputs,
            then its `captured` values, in that order.
        progress: For an EP that takes long: called with (what it does, how much is done, how
            much there is); an exception from it cancels.
    """

    name: str
    graph: Graph
    bodies: Mapping[tuple[int, str], Runnable] = field(default_factory=dict)
    progress: Callable[[str, int, int], None] | None = None


class CompiledPartition(ABC):
    """A partition ready to run on one device; many threads may run it at once."""

    records_nodes: ClassVar[bool] = False
    """Whether `run` adds each node to a profile and checks `RunOptions.terminate` between them
    (ort_lite.execution.run_context.current_run); else the session does so for all of it."""

    empty_inputs: frozenset[int] = frozenset()
    """Positions of inputs that `run` takes without elements although its EP takes none."""

    @abstractmethod
    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, in the partition's order.

        Results own their memory: a later run never changes an array already returned.
        Inputs are C-contiguous arrays of the declared types and are not written to.

        Raises:
            EPFail: The SDK or the device failed.
        """

    @property
    def notes(self) -> tuple[str, ...]:
        """Current facts for `session.explain()`, one line each."""
        return ()

    def forget_source(self) -> None:  # noqa: B027 - most keep nothing
        """Let go of what only `export_model` needs; it is not asked for any more."""

    @abstractmethod
    def release(self) -> None:
        """Give device memory and mapped bytes back; the partition is not run after it."""


@runtime_checkable
class SupportsCompileByShape(Protocol):
    """A compiled partition that compiles again when it meets inputs of new shapes."""

    def is_ready(self, shapes: Shapes) -> bool:
        """Whether a run with inputs of these shapes, in the run's order, compiles nothing."""
        ...

    def get_ready(self, shapes: Shapes) -> None:
        """Compile for inputs of these shapes as a run would; other runs go on meanwhile.

        Raises:
            EPFail: The SDK or the device failed, or the partition was released.
        """
        ...


class NotInstalled(EPFail):
    """An EP has no SDK or no driver on this machine; a session goes on with the next EP."""


class CompileRefused(EPFail):
    """An EP cannot compile a partition after all; its nodes go to the next EP.

    Attributes:
        fused_name: Which partition.
        refused: Indices in that partition's graph to reasons; empty refuses all of it.
    """

    def __init__(
        self, fused_name: str, message: str, refused: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(message)
        self.fused_name = fused_name
        self.refused = dict(refused or {})


@dataclass(frozen=True, slots=True)
class StartupHints:
    """An EP whose `import_model` releases the GIL: another thread imports modules meanwhile.

    Attributes:
        modules_after_import: The EP's own modules among those.
    """

    modules_after_import: Sequence[str] = ()


class ExecutionProvider(ABC):
    """One device, seen through one SDK.

    Subclasses own their SDK objects and share no module-level state, so that two sessions
    can hold two instances. Methods may raise `EPFail` only.
    """

    fusions: ClassVar[frozenset[str]] = frozenset()
    """Names of fusions (docs/optimizations.md) that the partitions it compiles are to go
    through; only an EP that runs what a fusion makes may name it."""

    widened_types: frozenset[int] = frozenset()
    """DataType numbers of narrow floats that the EP lacks or computes worse than float32, in which
    sessions whose first EP it is compute between casts (docs/optimizations.md)."""

    name: ClassVar[str]
    """Also the `source` of its EPContext nodes, e.g. "OpenVINOExecutionProvider"."""

    survives_fork: ClassVar[bool] = True
    """Whether a forked process may go on with the EP; not if its SDK keeps threads."""

    startup_hints: StartupHints | None = None
    """How a session may overlap `import_model` with other work; None for not at all."""

    takes_empty: ClassVar[bool] = False
    """Whether the EP computes values without elements (a batch of 0). If not, it is offered no node
    that has one, and runs with such an input are answered without it."""

    whole_bodies: frozenset[str] = frozenset()
    """Operators of ai.onnx that the EP compiles together with their bodies. It is offered those
    whose bodies have no value without elements, which are then not partitioned on their own."""

    runs_bodies_through_session: ClassVar[bool] = False
    """Whether the session partitions and prepares the bodies of control flow for this EP. If not,
    it is offered no node that has one, `whole_bodies` excepted: the bodies are partitioned on
    their own."""

    @property
    @abstractmethod
    def identity(self) -> HardwareIdentity:
        """The device and SDK that this instance would run on now."""

    @abstractmethod
    def get_capability(self, view: GraphView) -> Capability:
        """Say for every candidate whether this EP runs it, with a reason where it does not."""

    @abstractmethod
    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        """Compile each partition; the result has one entry per element of `fused`.

        Raises:
            CompileRefused: A partition turns out not to be supported.
            EPFail: The SDK or the device failed.
        """

    def placement_costs(self) -> PlacementCosts | None:
        """Costs of running nodes here; None, the default, keeps all that the EP supports here."""
        return None

    def is_settled(self) -> bool:
        """Whether a later session here gets the same offers: False once a device has failed."""
        return True

    def release(self) -> None:  # noqa: B027 - most EPs hold nothing between partitions
        """Let go of the SDK; the EP is not used after it."""


@runtime_checkable
class SupportsEpContext(Protocol):
    """An EP whose compiled form can be kept in an EPContext node."""

    def export_model(self, compiled: CompiledPartition, out: BinaryIO) -> None:
        """Write the compiled form to `out`; the core digests and stores it."""
        ...

    def import_model(self, payload: memoryview, io: PartitionIo) -> CompiledPartition:
        """Load what `export_model` wrote.

        Args:
            payload: Read-only or copy-on-write mapped bytes that passed their digest check.
                The result keeps a reference to it for as long as the SDK may read it.
            io: As the EPContext node declares it; a mismatch is an error.

        Raises:
            InvalidGraph: With reason `shape` or `vendor_rejected`.
        """
        ...

    def check_compatibility(self, recorded: HardwareIdentity) -> Compatibility:
        """Whether a payload built for `recorded` runs here; imports nothing, runs nothing."""
        ...

    def compatibility_info(self) -> str:
        """The text for model metadata `ep_compatibility_info.<EP>`, in the vendor's form."""
        ...


@runtime_checkable
class SupportsOptionPromises(Protocol):
    """An EP with options that promise something of results: payloads made without do not fit."""

    def missing_option(self, recorded: Mapping[str, str]) -> str:
        """An option of this session that a payload was made without, as "key=value"; "" for none.

        Args:
            recorded: Options that the payload was made with; empty if nothing is recorded.
        """
        ...


@runtime_checkable
class SupportsPayloadIdentity(Protocol):
    """An EP that can say what a payload or a text of its vendor's form was built for.

    Both read untrusted bytes: nothing in them is believed, and no SDK gets them.
    """

    def identity_of_payload(self, payload: memoryview) -> HardwareIdentity:
        """Read the identity from the payload itself; fields that it lacks are "".

        Raises:
            InvalidGraph: It is not a payload of this EP.
        """
        ...

    def identity_of_info(self, info: str) -> HardwareIdentity | None:
        """Read the metadata `ep_compatibility_info.<EP>` of a model; None for an unknown format."""
        ...


@runtime_checkable
class SupportsQuickIdentity(Protocol):
    """An EP whose complete identity takes its SDK long to determine."""

    @property
    def quick_identity(self) -> HardwareIdentity:
        """`identity` without what takes long; equal ones make equal payloads."""
        ...


class WeightsSink(Protocol):
    """Weights on their way into a shared container."""

    def add_weights(self, data: memoryview) -> int:
        """Store weights, unless they are there; their offset in bytes, which is final."""
        ...

    def view(self) -> memoryview:
        """All weights so far at their offsets, mapped copy-on-write."""
        ...

    @property
    def path(self) -> str:
        """The same as a file, for SDKs that map weights themselves."""
        ...


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """Weights of a shared container that passed their digest checks.

    Attributes:
        data: The whole container, mapped; offsets of weights count from its start.
        lend_path: Lends the same as a file, for SDKs that map it themselves, during an import.
            `LentPath.owner` is set to an object that lives for as long as the SDK's map does;
            then the bytes of the map stay the same, too, when another process writes to the file.
    """

    data: memoryview
    lend_path: Callable[[], AbstractContextManager[LentPath]]


@runtime_checkable
class SupportsWeightSharing(Protocol):
    """An EP whose compiled form can refer to weights stored apart from it."""

    def export_shared(
        self, compiled: CompiledPartition, weights: WeightsSink, out: BinaryIO
    ) -> bool:
        """Write the compiled form to `out`, its weights to `weights`.

        Returns:
            False if it cannot be taken apart; the core then stores `export_model`'s form,
            and drops what was added.
        """
        ...

    def import_shared(
        self, payload: memoryview, weights: WeightsFile, io: PartitionIo
    ) -> CompiledPartition:
        """Load what `export_shared` wrote; otherwise as `import_model`."""
        ...


@runtime_checkable
class SupportsMemorySharing(Protocol):
    """An EP whose contexts run in one working memory."""

    def max_size(self, compiled: CompiledPartition) -> int:
        """Size of the working memory that a compiled form needs, in bytes."""
        ...

    def reserve(self, max_size: int) -> None:
        """Reserve the largest size that the nodes of a model record, before the first import.

        The context that records it is imported first.
        """
        ...


_REASONS = {
    "sdk_version": Reason.SDK_VERSION,
    "sdk_build": Reason.SDK_VERSION,
    "driver_version": Reason.DRIVER_VERSION,
    "vendor": Reason.HARDWARE_ARCHITECTURE,
    "architecture": Reason.HARDWARE_ARCHITECTURE,
    "device": Reason.HARDWARE_ARCHITECTURE,
    "requirements": Reason.HARDWARE_ARCHITECTURE,
}

OPTIMAL = Compatibility(CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL)


def unsupported(reason: Reason, message: str) -> Compatibility:
    """Make a verdict that refuses a payload."""
    return Compatibility(CompiledModelCompatibility.EP_UNSUPPORTED, reason, message)


def compare_identities(
    recorded: HardwareIdentity, present: HardwareIdentity, *, tolerated: Sequence[str] = ()
) -> Compatibility:
    """The default verdict: every field that both sides report must be equal.

    Args:
        recorded: From the EPContext node.
        present: Of the EP that would load the payload.
        tolerated: Fields whose difference costs speed but not correctness on this SDK; a
            difference in them alone gives EP_SUPPORTED_PREFER_RECOMPILATION.
    """
    differences = recorded.differences(present)
    fatal = [d for d in differences if d.field not in tolerated]
    if fatal:
        return unsupported(_REASONS[fatal[0].field], _describe_differences(fatal))
    if differences:
        return Compatibility(
            CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION,
            message=_describe_differences(differences),
        )
    return OPTIMAL


def _describe_differences(differences: Sequence[FieldDifference]) -> str:
    return "; ".join(
        f"{d.field}: built with '{d.recorded}', here '{d.present}'" for d in differences
    )
