"""Resolves the names in kernel type constraints (`T`) to inputs and outputs of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class OpIdentifier:
    """One version of an operator; its text form is `domain:op_type:since_version`."""

    domain: str
    op_type: str
    since_version: int

    def __str__(self) -> str:
        """E.g. `:Add:14`; kernel_type_str_resolver.h."""
        return f"{self.domain}:{self.op_type}:{self.since_version}"

    @classmethod
    def parse(cls, text: str) -> OpIdentifier:
        """Read the text form.

        Raises:
            Fail: Not three parts, or the third is not a number.
        """
        parts = text.split(":")
        if len(parts) != 3 or not parts[2].isdecimal():
            raise Fail(
                f"Op identifier '{text}': expected three components, "
                "'<domain>:<op type>:<since version>'"
            )
        return cls(parts[0], parts[1], int(parts[2]))


@dataclass(frozen=True, slots=True)
class ArgPlace:
    """The `index`-th formal input or output."""

    is_input: bool
    index: int


class FormalParameter(Protocol):
    """The attributes of onnx.defs.OpSchema.FormalParameter that are used."""

    @property
    def name(self) -> str:
        """Name of the parameter in the operator's text."""
        ...

    @property
    def type_str(self) -> str:
        """A constraint's name or a type."""
        ...


def places_of_schema(
    inputs: Sequence[FormalParameter],
    outputs: Sequence[FormalParameter],
    constraints: frozenset[str],
) -> dict[str, tuple[ArgPlace, ...]]:
    """Constraint and parameter names of a schema, with the parameters each stands for.

    A parameter whose type is a constraint (`T`) is found under the constraint's name, another
    one under its own: kernel_type_str_resolver.cc RegisterOpSchema.

    Raises:
        Fail: An input and an output have one name and different types.
    """
    places: dict[str, list[ArgPlace]] = {}
    fixed: dict[str, str] = {}
    for is_input, formals in ((True, inputs), (False, outputs)):
        for index, formal in enumerate(formals):
            key = formal.type_str
            if key not in constraints:
                key = formal.name
                if fixed.setdefault(key, formal.type_str) != formal.type_str:
                    raise Fail(
                        "Kernel type string already exists for formal parameter name "
                        f"'{key}', but the existing argument's formal parameter type string "
                        f"is different: '{fixed[key]}' and '{formal.type_str}'"
                    )
            places.setdefault(key, []).append(ArgPlace(is_input, index))
    return {key: tuple(of_key) for key, of_key in places.items()}


@dataclass(slots=True)
class KernelTypeStrResolver:
    """Operators with their names for types, from schemas or from an `.ort` file."""

    _ops: dict[OpIdentifier, Mapping[str, tuple[ArgPlace, ...]]] = field(default_factory=dict)

    def knows(self, op: OpIdentifier) -> bool:
        """Whether `add` was called for `op`."""
        return op in self._ops

    def add(self, op: OpIdentifier, places: Mapping[str, tuple[ArgPlace, ...]]) -> None:
        """Enter an operator; entering it again with the same content changes nothing.

        Raises:
            Fail: It is known with other content.
        """
        if self._ops.setdefault(op, places) != places:
            raise Fail(f"Duplicate entry for op id: {op}")

    def resolve(self, op: OpIdentifier, type_str: str) -> tuple[ArgPlace, ...]:
        """The formal parameters that `type_str` stands for; no operator has none of them.

        A variadic parameter is the last of a schema, so that formal and actual index are the
        same for the first argument of each.

        Raises:
            Fail: The operator is not known, or has no such name.
        """
        places = self._ops.get(op)
        if places is None:
            raise Fail(f"Failed to find op_id: {op}")
        resolved = places.get(type_str)
        if resolved is None:
            raise Fail(
                f"Failed to find args for kernel type string '{type_str}' for node type "
                f"'{op.op_type}'. If type constraint names are available, ensure that they "
                "are used in the kernel def type constraints instead of op input or output "
                "names. Not doing so will result in this error."
            )
        return resolved
