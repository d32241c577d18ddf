"""A blueprint's table as JSON and back, without trusting a number in it."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.errors import FormatError
from eps.opencl.blueprint import ARENA, WEIGHTS, Blueprint, Call, Place, Port
from eps.opencl.expression import C_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

_KERNEL = re.compile(r"k[0-9a-f]{12}")
MAX_TASKS = (1 << 31) - 1
MAX_RANK = 64
MAX_BYTES = 1 << 46


def table_of(blueprint: Blueprint) -> dict[str, object]:
    """Everything of a blueprint but its source and weights."""
    return {
        "options": blueprint.options,
        "arena": blueprint.arena,
        "weights": blueprint.weights.nbytes,
        "inputs": [_port_row(port) for port in blueprint.inputs],
        "outputs": [_port_row(port) for port in blueprint.outputs],
        "calls": [
            [
                call.kernel,
                call.tasks,
                [[int(p.region == WEIGHTS), p.offset, p.size] for p in call.arguments],
                call.checks,
                call.work,
            ]
            for call in blueprint.calls
        ],
    }


def _port_row(port: Port) -> list[object]:
    return [port.name, port.dtype, list(port.shape), port.offset]


def blueprint_of(
    table: Mapping[str, object], source: str, weights: memoryview, alignment: int
) -> Blueprint:
    """What `table_of` wrote, every place inside its region.

    Args:
        table: From a file.
        source: The program's text.
        weights: Content of the region.
        alignment: In bytes, that the device needs of a part of a buffer.

    Raises:
        FormatError: Something is not what it must be.
    """
    sizes = {ARENA: number(table.get("arena"), "arena", 1, MAX_BYTES), WEIGHTS: weights.nbytes}
    if number(table.get("weights"), "weights", 0, MAX_BYTES) != weights.nbytes:
        raise FormatError("weights", f"{weights.nbytes} bytes", f"{table.get('weights')}")
    return Blueprint(
        source=source,
        options=text(table.get("options"), "options"),
        calls=tuple(_call(row, sizes, alignment) for row in array(table.get("calls"), "calls")),
        arena=sizes[ARENA],
        weights=weights,
        inputs=tuple(_port(row, sizes) for row in array(table.get("inputs"), "inputs")),
        outputs=tuple(_port(row, sizes) for row in array(table.get("outputs"), "outputs")),
    )


def _call(row: object, sizes: Mapping[str, int], alignment: int) -> Call:
    kernel, tasks, places, checks, work = array(row, "call", 5)
    name = text(kernel, "call.kernel")
    if not _KERNEL.fullmatch(name):
        raise FormatError("call.kernel", name[:40], "k and 12 hexadecimal digits")
    if not isinstance(checks, bool):
        raise FormatError("call.checks", str(checks)[:40], "true or false")
    return Call(
        kernel=name,
        tasks=number(tasks, "call.tasks", 1, MAX_TASKS),
        arguments=tuple(_place(p, sizes, alignment) for p in array(places, "call.arguments")),
        checks=checks,
        work=number(work, "call.work", 0, 1 << 62),
    )


def _place(row: object, sizes: Mapping[str, int], alignment: int) -> Place:
    which, start, length = array(row, "place", 3)
    region = (ARENA, WEIGHTS)[number(which, "place.region", 0, 1)]
    offset = number(start, "place.offset", 0, sizes[region])
    size = number(length, "place.size", 1, sizes[region])
    if offset + size > sizes[region] or offset % alignment:
        raise FormatError(
            "place", f"[{offset}, +{size})", f"inside {sizes[region]}, aligned to {alignment}"
        )
    return Place(region, offset, size)


def _port(row: object, sizes: Mapping[str, int]) -> Port:
    name, kind, dims, start = array(row, "port", 4)
    dtype = text(kind, "port.type")
    if dtype not in C_TYPES:
        raise FormatError("port.type", dtype[:40], "an element type")
    rows = array(dims, "port.shape")
    if len(rows) > MAX_RANK:
        raise FormatError("port.shape", f"rank {len(rows)}", f"at most {MAX_RANK}")
    shape = tuple(number(n, "port.shape", 0, MAX_BYTES) for n in rows)
    offset = number(start, "port.offset", 0, sizes[ARENA])
    if offset + prod(shape) * np.dtype(dtype).itemsize > sizes[ARENA]:
        raise FormatError("port", f"{dtype}{list(shape)} at {offset}", f"inside {sizes[ARENA]}")
    return Port(name=text(name, "port.name"), dtype=dtype, shape=shape, offset=offset)


def number(value: object, field: str, low: int, high: int) -> int:
    """A whole number in a range.

    Raises:
        FormatError: It is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise FormatError(field, str(value)[:40], f"a whole number from {low} to {high}")
    return value


def text(value: object, field: str) -> str:
    """A text.

    Raises:
        FormatError: It is not.
    """
    if not isinstance(value, str):
        raise FormatError(field, str(value)[:40], "text")
    return value


def array(value: object, field: str, length: int | None = None) -> list[object]:
    """A list, of `length` if that is given.

    Raises:
        FormatError: It is not.
    """
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise FormatError(field, str(value)[:40], f"a list of {length or 'any number of'} values")
    return value
