"""Ports of a payload and the values of its node: matched by name, else by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctx_formats.errors import Reason
from ctx_formats.onnx_model import DataType, TensorType, ValueInfo
from ort_lite.ep import InvalidGraph, Port, PortError, Ports, import_order, port_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim


def value(name: str, *shape: Dim, kind: int = DataType.FLOAT) -> ValueInfo:
    return ValueInfo(name, TensorType(kind, shape))


def port(*names: str, shape: Sequence[int | None] | None = (2,), kind: int = 1) -> Port:
    return Port(frozenset(names), kind, shape)


def test_values_find_their_ports_by_any_name() -> None:
    ports = Ports.by_name([port("b", "beta"), port("a")])
    assert port_order([value("a", 2), value("beta", 2)], ports) == (1, 0)


def test_new_names_around_an_old_payload_go_by_position() -> None:
    ports = Ports.by_name([port("a"), port("b")])
    assert import_order([value("x", 2), value("y", 2)], ports) == (0, 1)
    with pytest.raises(PortError, match="'x' is not in the compiled model"):
        port_order([value("x", 2), value("y", 2)], ports)


@pytest.mark.parametrize(
    ("declared", "compiled", "text"),
    [
        ([value("a", 2), value("z", 2)], [port("a"), port("b")], "'z' is not in the compiled"),
        ([value("a", 2)], [port("a"), port("b")], r"the compiled model has more: \[\['b'\]\]"),
        ([value("x", 2)], [port("a"), port("b")], "'x' is not in the compiled model"),
        ([value("a", 2, kind=7)], [port("a")], "'a' is float in the compiled model and int64"),
        ([value("a", 2)], [port("a", kind=0)], "'a' has no ONNX element type"),
        ([value("a", 2)], [port("a", shape=(2, 1))], "'a' has rank 2, not 1"),
        ([value("a", 3)], [port("a")], "'a' has size 2 in dimension 0, not 3"),
    ],
)
def test_a_payload_for_another_graph_is_refused(
    declared: list[ValueInfo], compiled: list[Port], text: str
) -> None:
    with pytest.raises(InvalidGraph, match=f"does not fit its EPContext node: .*{text}") as caught:
        import_order(declared, Ports.by_name(compiled))
    assert caught.value.reason == Reason.SHAPE


@pytest.mark.parametrize("shape", [None, (None,), (2,)])
def test_sizes_that_one_side_does_not_know_fit(shape: tuple[int | None, ...] | None) -> None:
    ports = Ports.by_name([port("a", shape=shape)])
    assert import_order([value("a", "n")], ports) == (0,)
    assert import_order([ValueInfo("a", None)], ports) == (0,)
    assert ports.all[0].is_static == (shape == (2,))
