"""Attributes of nodes as plain values, for rules that read and write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import Attribute, AttributeType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Node


def int_of(node: Node, name: str, default: int) -> int:
    """The value of an INT attribute, or the default."""
    attribute = node.attributes.get(name)
    return (
        attribute.value if attribute is not None and isinstance(attribute.value, int) else default
    )


def float_of(node: Node, name: str, default: float) -> float:
    """The value of a FLOAT attribute, or the default."""
    attribute = node.attributes.get(name)
    value = attribute.value if attribute is not None else None
    return float(value) if isinstance(value, float | int) else default


def ints_of(node: Node, name: str) -> tuple[int, ...] | None:
    """An INTS attribute; None if it is not there."""
    attribute = node.attributes.get(name)
    if attribute is None or not isinstance(attribute.value, tuple):
        return None
    return tuple(item for item in attribute.value if isinstance(item, int))


def ints(name: str, values: Sequence[int]) -> dict[str, Attribute]:
    """An INTS attribute by its name."""
    return {name: Attribute(name, AttributeType.INTS, tuple(values))}


def floating(name: str, value: float) -> dict[str, Attribute]:
    """A FLOAT attribute by its name."""
    return {name: Attribute(name, AttributeType.FLOAT, value)}


def integer(name: str, value: int) -> dict[str, Attribute]:
    """An INT attribute by its name."""
    return {name: Attribute(name, AttributeType.INT, value)}
