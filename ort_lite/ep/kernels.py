"""Kernels of an execution provider: defined, bound to nodes, and searched by version and types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import AttributeType, Tensor
from ort_lite.ep.interface import Value
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Attribute, Node, ValueType
    from ort_lite.ep.interface import Runnable
    from ort_lite.kernel_type_str import KernelTypeStrResolver, OpIdentifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A subgraph of a control-flow node, ready to run.

    Attributes:
        input_types: Declared, None if unknown.
        output_types: Declared or inferred, None if unknown.
        captured: Which of the node's implicit inputs it takes after its own, by position.
    """

    runnable: Runnable
    input_types: tuple[ValueType | None, ...]
    output_types: tuple[ValueType | None, ...]
    captured: tuple[int, ...] = ()

    def run(self, values: Sequence[Value], implicit: Sequence[Value]) -> Sequence[Value]:
        """Outputs for `values`, the declared inputs, given the node's implicit inputs."""
        if not self.captured:
            return self.runnable.run(values)
        return self.runnable.run([*values, *[implicit[i] for i in self.captured]])


def _allocate(shape: Sequence[int], dtype: Any) -> Any:  # noqa: ANN401 - as numpy.empty
    import numpy as np  # noqa: PLC0415 - lazy: reload

    return np.empty(shape, dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelInfo:
    """A node, its place among operator versions, and what is known of its values.

    Attributes:
        domain: "" for ai.onnx, also where the model writes "ai.onnx".
        since_version: Of the operator's schema, not of the model's opset.
        defaults: Attribute defaults of that schema version, as `attr` gives them.
        input_types: None if omitted or not known; shapes as far as inference got.
        constants: Read-only value of each input that is a constant, else None.
        used_outputs: For each output, whether it is used.
        bodies: Subgraphs by attribute name (of GRAPHS: name#i). A node with bodies is called
            with its inputs followed by its implicit inputs.
        empty: As numpy.empty, from memory that the session uses again once the array and all
            views of it are gone. For results and temporaries alike.
    """

    node: Node
    domain: str = ""
    since_version: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict)
    input_types: tuple[ValueType | None, ...] = ()
    output_types: tuple[ValueType | None, ...] = ()
    constants: tuple[Any, ...] = ()
    used_outputs: tuple[bool, ...] = ()
    bodies: Mapping[str, Body] = field(default_factory=dict)
    empty: Callable[..., Any] = _allocate

    @property
    def op_type(self) -> str:
        """Operator type of the node."""
        return self.node.op_type

    @property
    def n_inputs(self) -> int:
        """Inputs of the node, omitted ones counted, implicit ones not."""
        return len(self.node.inputs)

    @property
    def n_outputs(self) -> int:
        """Outputs of the node, omitted ones counted."""
        return len(self.node.outputs)

    def has_attr(self, name: str) -> bool:
        """Whether the node itself gives `name`; a default does not count."""
        return name in self.node.attributes

    def attr(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as the model says
        """An attribute as a Python value.

        Returns:
            int, float, str, a list of one of them, or a numpy array for a tensor (a list of
            them for TENSORS); the schema's default, then `default`, where the node has none.
        """
        attribute = self.node.attributes.get(name)
        if attribute is None:
            return self.defaults.get(name, default)
        return attribute_value(attribute)

    def constant(self, index: int) -> Any:  # noqa: ANN401 - a numpy array, or None
        """Value of input `index` if that is a constant, else None; also past the end."""
        return self.constants[index] if index < len(self.constants) else None

    def input_type(self, index: int) -> ValueType | None:
        """Type of input `index`; None if omitted, unknown or past the end."""
        return self.input_types[index] if index < len(self.input_types) else None

    def is_output_used(self, index: int) -> bool:
        """Whether output `index` is used; False past the end."""
        return index < len(self.used_outputs) and self.used_outputs[index]

    def body(self, name: str) -> Body:
        """The subgraph in attribute `name`; KeyError if the node has none of that name."""
        return self.bodies[name]


KernelFn = Callable[..., Value]
"""Positional inputs, None for an omitted optional one; gives a value or a tuple of values."""

KernelFactory = Callable[[KernelInfo], KernelFn | None]
"""Binds a node once; None declines it (attributes not handled), and the search goes on."""


@dataclass(frozen=True, slots=True)
class KernelDef:
    """The operator, versions and types that a kernel serves.

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
class SupportsKernelListing(Protocol):
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
    constraints = {name: frozenset(allowed) for name, allowed in (types or {}).items()}

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

    kernels: tuple[KernelDef, ...] = ()
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

    def since_versions(self, domain: str, op_type: str) -> tuple[int, ...]:
        """First versions of the kernels for an operator, in order of registration."""
        return tuple(d.since[0] for d in self._kernels.get((domain, op_type), ()))

    def search(self, call: KernelCall, resolver: KernelTypeStrResolver) -> Match:
        """Every kernel that serves `call`, or the reason each one does not."""
        kernels = self._kernels.get((call.op.domain, call.op.op_type), ())
        definitions = []
        mismatches = []
        for definition in kernels:
            mismatch = _mismatch(definition, call, resolver)
            if mismatch:
                mismatches.append(mismatch)
            else:
                definitions.append(definition)
        return Match(tuple(definitions), () if definitions else tuple(mismatches))

    def lookup(self, call: KernelCall, resolver: KernelTypeStrResolver) -> KernelDef:
        """The first kernel that serves `call`: kernel_registry.cc TryFindKernel.

        Raises:
            Fail: There is none; says why for each kernel of that operator.
        """
        match = self.search(call, resolver)
        if match.kernels:
            return match.kernels[0]
        if not match.mismatches:
            raise Fail("Kernel not found")
        raise Fail(
            f"Op with name ({call.node_name}) domain ({call.op.domain}) and type "
            f"({call.op.op_type}) kernel is not supported in {self.provider}. Encountered "
            f"following errors: ({' | '.join(match.mismatches)})"
        )


def _conflict(one: KernelDef, other: KernelDef) -> bool:
    """kernel_def_builder.cc IsConflict; an open end stands for the start alone."""
    if _last_version(one) < other.since[0] or _last_version(other) < one.since[0]:
        return False
    shared = one.type_constraints.keys() & other.type_constraints.keys()
    return not any(one.type_constraints[n].isdisjoint(other.type_constraints[n]) for n in shared)


def _last_version(definition: KernelDef) -> int:
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


def attribute_value(attribute: Attribute) -> Any:  # noqa: ANN401 - as the model says
    """An attribute as the Python value that `KernelInfo.attr` documents."""
    value = attribute.value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Tensor):
        return _array(value)
    if isinstance(value, tuple):
        if attribute.type == AttributeType.STRINGS:
            return [item.decode() for item in value]
        if attribute.type == AttributeType.TENSORS:
            return [_array(item) for item in value]
        return list(value)
    return value


def _array(tensor: Tensor) -> Any:  # noqa: ANN401 - ort_lite is imported without numpy
    from ort_lite.model.tensor_values import to_numpy  # noqa: PLC0415 - lazy: reload

    return to_numpy(tensor)
