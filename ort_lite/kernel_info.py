"""What a kernel factory learns about the node that it binds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import AttributeType, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.onnx_model import Attribute, Node, ValueType
    from ort_lite.execution_provider import Runnable, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A subgraph of a control-flow node, ready to run.

    Attributes:
        input_types: Declared, None where unknown.
        output_types: Declared or inferred, None where unknown.
        captured: Which of the node's implicit inputs it takes after its own, by position.
    """

    runnable: Runnable
    input_types: tuple[ValueType | None, ...]
    output_types: tuple[ValueType | None, ...]
    captured: tuple[int, ...] = ()

    def run(self, values: Sequence[Value], implicit: Sequence[Value]) -> Sequence[Value]:
        """Outputs for `values`, the declared inputs, given the node's implicit inputs."""
        return self.runnable.run([*values, *(implicit[i] for i in self.captured)])


def _fresh(shape: Sequence[int], dtype: Any) -> Any:  # noqa: ANN401 - as numpy.empty
    import numpy as np  # noqa: PLC0415 - lazy: reload

    return np.empty(shape, dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelInfo:
    """A node, its place among operator versions, and what is known of its values.

    Attributes:
        domain: "" for ai.onnx, also where the model writes "ai.onnx".
        since_version: Of the operator's schema, not of the model's opset.
        defaults: Attribute defaults of that schema version, as `attr` gives them.
        input_types: None where omitted or not known; shapes as far as inference got.
        constants: Read-only value of each input that is a constant, else None.
        wanted: For each output, whether anybody uses it.
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
    wanted: tuple[bool, ...] = ()
    bodies: Mapping[str, Body] = field(default_factory=dict)
    empty: Callable[..., Any] = _fresh

    @property
    def op_type(self) -> str:
        """Of the node."""
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
        given = self.node.attributes.get(name)
        if given is None:
            return self.defaults.get(name, default)
        return attribute_value(given)

    def constant(self, index: int) -> Any:  # noqa: ANN401 - a numpy array, or None
        """Value of input `index` if that is a constant, else None; also past the end."""
        return self.constants[index] if index < len(self.constants) else None

    def input_type(self, index: int) -> ValueType | None:
        """Type of input `index`; None where omitted, unknown or past the end."""
        return self.input_types[index] if index < len(self.input_types) else None

    def wants(self, index: int) -> bool:
        """Whether anybody uses output `index`; False past the end."""
        return index < len(self.wanted) and self.wanted[index]

    def body(self, name: str) -> Body:
        """The subgraph in attribute `name`; KeyError if the node has none of that name."""
        return self.bodies[name]


def attribute_value(given: Attribute) -> Any:  # noqa: ANN401 - as the model says
    """An attribute as the Python value that `KernelInfo.attr` documents."""
    value = given.value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Tensor):
        return _array(value)
    if isinstance(value, tuple):
        if given.type == AttributeType.STRINGS:
            return [item.decode() for item in value]
        if given.type == AttributeType.TENSORS:
            return [_array(item) for item in value]
        return list(value)
    return value


def _array(tensor: Tensor) -> Any:  # noqa: ANN401 - ort_lite is imported without numpy
    from ort_lite.model.tensor_values import to_numpy  # noqa: PLC0415 - lazy: reload

    return to_numpy(tensor)
