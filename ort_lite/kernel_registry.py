"""Kernels of an execution provider, found by operator, domain, version and types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.execution_provider import Value
from ort_lite.kernel_info import KernelInfo
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.kernel_type_str import KernelTypeStrResolver, OpIdentifier

__all__ = [
    "KernelCall",
    "KernelDef",
    "KernelFactory",
    "KernelFn",
    "KernelInfo",
    "KernelRegistry",
    "ListsKernels",
    "Match",
    "SupportsKernels",
    "kernel",
]

KernelFn = Callable[..., Value]
"""Positional inputs, None for an omitted optional one; gives a value or a tuple of values."""

KernelFactory = Callable[[KernelInfo], KernelFn | None]
"""Binds a node once; None declines it (attributes not handled), and the search goes on."""


@dataclass(frozen=True, slots=True)
class KernelDef:
    """What a kernel is for.

    Attributes:
        domain: "" for ai.onnx.
        since: First and last version of the operator's schema. None as last matches the
            first version alone, so that a newer schema is never taken by an older kernel.
        type_constraints: Name in the schema (`T`, or a formal parameter's name) to types
            such as "tensor(float)"; a name that is not there is not constrained.
        factory: Makes the kernel's function for one node.
    """

    op_type: str
    domain: str
    since: tuple[int, int | None]
    type_constraints: Mapping[str, frozenset[str]]
    factory: KernelFactory

    def __post_init__(self) -> None:
        """Refuse a range that matches nothing."""
        start, end = self.since
        if start < 1 or (end is not None and end < start):
            raise ValueError(f"{self.op_type}: versions {start} to {end} match nothing")

    def serves(self, version: int) -> bool:
        """Whether `version` of the schema is in range: kernel_registry.cc VerifyVersion."""
        start, end = self.since
        return version == start or (end is not None and start <= version <= end)


@runtime_checkable
class SupportsKernels(Protocol):
    """An EP that runs a user's kernels: `SessionOptions.register_custom_kernel`."""

    def register_kernel(self, definition: KernelDef) -> None:
        """Look at `definition` before the EP's own kernels; called before any graph is shown.

        Raises:
            Fail: A registered one serves the same versions and types.
        """
        ...


@runtime_checkable
class ListsKernels(Protocol):
    """An EP with a kernel for each operator, which tools may list."""

    def list_kernels(self) -> tuple[KernelDef, ...]:
        """All of them, those that a user registered among them."""
        ...


def kernel(
    op_type: str,
    *,
    since: tuple[int, int | None] = (1, None),
    domain: str = "",
    types: Mapping[str, Iterable[str]] | None = None,
) -> Callable[[KernelFactory], KernelDef]:
    """Turn a factory into a KernelDef; modules list theirs in a tuple `KERNELS`.

    One factory may serve several operators or ranges: `kernel("Add", since=(7, 14))(binary)`.
    """
    constraints = {name: frozenset(given) for name, given in (types or {}).items()}

    def define(factory: KernelFactory) -> KernelDef:
        return KernelDef(op_type, domain, since, constraints, factory)

    return define


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """A node as a registry sees it.

    Attributes:
        op: Domain, type and version of the operator's schema.
        node_name: For messages.
        input_types: Text of each actual input's type, "" where it is omitted or not known.
        output_types: The same for outputs.
    """

    op: OpIdentifier
    node_name: str = ""
    input_types: Sequence[str] = ()
    output_types: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """The result of a search: kernels in order of registration, or why there are none."""

    found: tuple[KernelDef, ...] = ()
    mismatches: tuple[str, ...] = ()


@dataclass(slots=True)
class KernelRegistry:
    """The kernels of one execution provider, or the user's own for a session.

    Attributes:
        provider: Name for messages.
    """

    provider: str
    _kernels: dict[tuple[str, str], list[KernelDef]] = field(default_factory=dict)

    def register(self, definition: KernelDef) -> None:
        """Add a kernel.

        Raises:
            Fail: A registered kernel serves the same versions and types.
        """
        key = (definition.domain, definition.op_type)
        others = self._kernels.setdefault(key, [])
        for other in others:
            if _conflict(definition, other):
                first, last = other.since
                where = f"{definition.op_type} {definition.domain or 'ai.onnx'} {self.provider}"
                raise Fail(
                    f"Failed to add kernel for {where}: Conflicting with a registered kernel "
                    f"with op versions. the since version is: {first}"
                    + ("" if last is None else f"-{last}")
                )
        others.append(definition)

    def definitions(self) -> tuple[KernelDef, ...]:
        """Everything registered, by operator."""
        return tuple(definition for key in self.operators() for definition in self._kernels[key])

    def operators(self) -> tuple[tuple[str, str], ...]:
        """(domain, operator) of everything registered, sorted."""
        return tuple(sorted(self._kernels))

    def starts(self, domain: str, op_type: str) -> tuple[int, ...]:
        """First versions of the kernels for an operator, in order of registration."""
        return tuple(d.since[0] for d in self._kernels.get((domain, op_type), ()))

    def search(self, call: KernelCall, resolver: KernelTypeStrResolver) -> Match:
        """Every kernel that serves `call`, or the reason each one does not."""
        kernels = self._kernels.get((call.op.domain, call.op.op_type), ())
        found = []
        mismatches = []
        for definition in kernels:
            mismatch = _mismatch(definition, call, resolver)
            if mismatch:
                mismatches.append(mismatch)
            else:
                found.append(definition)
        return Match(tuple(found), () if found else tuple(mismatches))

    def lookup(self, call: KernelCall, resolver: KernelTypeStrResolver) -> KernelDef:
        """The first kernel that serves `call`: kernel_registry.cc TryFindKernel.

        Raises:
            Fail: There is none; says why for each kernel of that operator.
        """
        match = self.search(call, resolver)
        if match.found:
            return match.found[0]
        if not match.mismatches:
            raise Fail("Kernel not found")
        raise Fail(
            f"Op with name ({call.node_name}) domain ({call.op.domain}) and type "
            f"({call.op.op_type}) kernel is not supported in {self.provider}. Encountered "
            f"following errors: ({' | '.join(match.mismatches)})"
        )


def _conflict(one: KernelDef, other: KernelDef) -> bool:
    """kernel_def_builder.cc IsConflict; an open end stands for the start alone."""
    if _last(one) < other.since[0] or _last(other) < one.since[0]:
        return False
    shared = one.type_constraints.keys() & other.type_constraints.keys()
    return not any(one.type_constraints[n].isdisjoint(other.type_constraints[n]) for n in shared)


def _last(definition: KernelDef) -> int:
    start, end = definition.since
    return start if end is None else end


def _mismatch(definition: KernelDef, call: KernelCall, resolver: KernelTypeStrResolver) -> str:
    """Why `definition` does not serve `call`, in ONNX Runtime's words; "" if it does."""
    version = call.op.since_version
    if not definition.serves(version):
        start, end = definition.since
        return (
            f"Op with name ({call.node_name}) and type ({call.op.op_type}) Version mismatch. "
            f"node_version: {version} kernel start version: {start} kernel_end_version: "
            f"{2**31 - 1 if end is None else end}"
        )
    for name, enabled in definition.type_constraints.items():
        actual = _actual_type(name, call, resolver)
        if actual and actual not in enabled:
            listed = ", ".join(sorted(enabled))
            return (
                "Found kernel in the supported version range "
                f"(node_version: {version}). However the types are incompatible. This op has "
                f"been implemented only for the following types ({listed}), "
                f"but the node in the model has the following type ({actual})"
            )
    return ""


def _actual_type(name: str, call: KernelCall, resolver: KernelTypeStrResolver) -> str:
    """Type of the first argument that `name` stands for and that the node has."""
    for place in resolver.resolve(call.op, name):
        types = call.input_types if place.is_input else call.output_types
        if place.index < len(types) and types[place.index]:
            return types[place.index]
    return ""
