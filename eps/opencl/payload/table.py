"""A spec's table as JSON and back, without trusting a number in it."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass, field, replace
from eps.opencl.compile.element_types import C_TYPES, HALF
from eps.opencl.program_spec import (
    CHAIN_ARGUMENTS,
    ArenaFill,
    ArenaSpan,
    LaunchSpec,
    PortUses,
    ProgramPort,
    ProgramSpec,
    WeightArgument,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.program_spec import Weight

_KERNEL = re.compile(r"[a-z][a-z0-9_]{0,63}[0-9a-f]{12}")
"""See `codegen/source.py`: a label, and the beginning of a digest."""
MAX_TASKS = (1 << 31) - 1
MAX_GROUP = 1 << 16
MAX_RANK = 64
MAX_BYTES = 1 << 46
MAX_NOTES = 256
MAX_NOTE = 1 << 10


def encode_spec(spec: ProgramSpec) -> dict[str, object]:
    """Everything of a spec but its source and weights."""
    uses = {} if spec.port_uses is None else {"uses": _encode_uses(spec.port_uses)}
    kept = {} if spec.kept is None else {"kept": spec.kept}
    rewritings = {"rewritings": list(spec.rewritings)} if spec.rewritings else {}
    chains = {"chains": list(map(list, spec.chains))} if spec.chains else {}
    return {
        **uses,
        **kept,
        **chains,
        **rewritings,
        "options": spec.options,
        "arena": spec.arena,
        "entry": spec.entry,
        "inputs": [_encode_port(port) for port in spec.inputs],
        "outputs": [_encode_port(port) for port in spec.outputs],
        "fills": [[f.place.offset, f.place.size, f.value] for f in spec.fills],
        "calls": [
            [
                call.kernel,
                call.tasks,
                call.group,
                [_encode_argument(argument) for argument in call.arguments],
                call.checks,
                call.work,
            ]
            for call in spec.calls
        ],
    }


def _encode_uses(uses: PortUses) -> list[object]:
    """Of inputs, of outputs: a list of [call, argument], or null; then [input, output] pairs."""
    return [
        *([None if one is None else list(map(list, one)) for one in side] for side in uses.sides),
        sorted(map(list, uses.in_place)),
    ]


def _encode_argument(argument: ArenaSpan | WeightArgument) -> int | list[int]:
    """The index of a weight, or offset and size in the arena."""
    if isinstance(argument, WeightArgument):
        return argument.index
    return [argument.offset, argument.size]


def _encode_port(port: ProgramPort) -> list[object]:
    return [port.name, port.dtype, list(port.shape), port.offset]


def decode_spec(
    table: Mapping[str, object], source: str, weights: tuple[Weight, ...], alignment: int
) -> ProgramSpec:
    """Decode what `encode_spec` wrote; every buffer must be inside the arena.

    Args:
        table: From a file.
        source: The program's text.
        weights: Constants that calls name by their index.
        alignment: In bytes, that the device needs of a part of a buffer.

    Raises:
        FormatError: Something is not what it must be.
    """
    arena = number(table.get("arena"), "arena", 1, MAX_BYTES)
    arguments = _Arguments(arena, alignment, len(weights))
    spec = ProgramSpec(
        source=source,
        options=text(table.get("options"), "options"),
        calls=tuple(_decode_launch(row, arguments) for row in array(table.get("calls"), "calls")),
        arena=arena,
        weights=weights,
        inputs=tuple(_decode_port(row, arena) for row in array(table.get("inputs"), "inputs")),
        outputs=tuple(_decode_port(row, arena) for row in array(table.get("outputs"), "outputs")),
        fills=tuple(_decode_fill(row, arguments) for row in array(table.get("fills"), "fills")),
        entry=truth(table.get("entry"), "entry"),
        rewritings=_decode_notes(table.get("rewritings", [])),
    )
    if "kept" in table:
        spec = replace(spec, kept=_decode_kept(table["kept"], spec, alignment))
    if "chains" in table:
        spec = replace(spec, chains=_decode_chains(table["chains"], spec))
    rows = table.get("uses")  # missing in payloads of releases that copied every input
    return spec if rows is None else replace(spec, port_uses=_decode_uses(rows, spec))


def _decode_kept(value: object, spec: ProgramSpec, alignment: int) -> int:
    """A border between buffers, with everything before it that is filled.

    Raises:
        FormatError: It is not.
    """
    kept = number(value, "kept", 0, spec.arena)
    spans = [a for call in spec.calls for a in call.arguments if isinstance(a, ArenaSpan)]
    spans += [ArenaSpan(port.offset, port.nbytes) for port in (*spec.inputs, *spec.outputs)]
    fills = [fill.place.offset + fill.place.size for fill in spec.fills]
    if (
        kept % alignment
        or any(span.offset < kept < span.offset + span.size for span in spans)
        or any(end > kept for end in fills)
    ):
        raise FormatError("kept", str(kept), "a multiple of the alignment that cuts no buffer")
    return kept


def _decode_chains(rows: object, spec: ProgramSpec) -> tuple[tuple[int, int], ...]:
    """Ranges of calls, one after the other, of a program whose entry runs them.

    Raises:
        FormatError: They are not.
    """
    chains: list[tuple[int, int]] = []
    for row in array(rows, "chains"):
        first, end = array(row, "chain", 2)
        begin = number(first, "chain.begin", chains[-1][1] if chains else 0, len(spec.calls))
        chains.append((begin, number(end, "chain.end", begin + 1, len(spec.calls))))
    if chains and not (spec.entry and spec.most_arguments >= CHAIN_ARGUMENTS):
        raise FormatError("chains", f"{len(chains)}", "none without an entry of three parameters")
    return tuple(chains)


def _decode_notes(rows: object) -> tuple[str, ...]:
    notes = tuple(text(row, "rewritings") for row in array(rows, "rewritings"))
    if len(notes) > MAX_NOTES or any(
        len(note) > MAX_NOTE or not note.isprintable() for note in notes
    ):
        raise FormatError(
            "rewritings", f"{len(notes)} lines", f"at most {MAX_NOTES} of {MAX_NOTE} characters"
        )
    return notes


def _decode_uses(row: object, spec: ProgramSpec) -> PortUses:
    """Every argument must be the whole memory of its port, which no other port has.

    Raises:
        FormatError: It is not.
    """
    ins, outs, pairs = array(row, "uses", 3)
    read = _decode_port_uses(ins, spec.inputs, spec)
    made = _decode_port_uses(outs, spec.outputs, spec)
    taken = [use for uses in (*read, *made) for use in uses or ()]
    if len(set(taken)) != len(taken):
        raise FormatError("uses", "an argument of two ports", "one port for each argument")
    in_place = set()
    sizes, made_sizes = ([p.nbytes for p in ports] for ports in (spec.inputs, spec.outputs))
    last_input, last_output = len(sizes) - 1, len(made_sizes) - 1
    for pair in array(pairs, "uses.in_place"):
        first, second = array(pair, "uses.in_place", 2)
        i = number(first, "uses.in_place", 0, last_input)
        o = number(second, "uses.in_place", 0, last_output)
        if sizes[i] != made_sizes[o] or read[i] is None or made[o] is None:
            raise FormatError("uses.in_place", f"[{i}, {o}]", "ports of one size with arguments")
        in_place.add((i, o))
    return PortUses(inputs=read, outputs=made, in_place=frozenset(in_place))


def _decode_port_uses(
    rows: object, ports: Sequence[ProgramPort], spec: ProgramSpec
) -> tuple[tuple[tuple[int, int], ...] | None, ...]:
    sides: list[tuple[tuple[int, int], ...] | None] = []
    for port, row in zip(ports, array(rows, "uses", len(ports)), strict=True):
        if row is None:
            sides.append(None)
            continue
        uses = []
        place = ArenaSpan(port.offset, port.nbytes)
        for use in array(row, "uses.argument"):
            first, second = array(use, "uses.argument", 2)
            call = number(first, "uses.call", 0, len(spec.calls) - 1)
            taken = spec.calls[call].arguments
            index = number(second, "uses.argument", 0, len(taken) - 1)
            if taken[index] != place:
                raise FormatError("uses.argument", f"{taken[index]}", f"the memory of {port.name}")
            uses.append((call, index))
        sides.append(tuple(uses))
    return tuple(sides)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """Reads arguments of calls: parts of an arena of so many bytes, or one of the weights.

    Equal arguments are one object. Of a decoder, half of the arguments and most names are equal.

    Attributes:
        known: Arguments that were read, by their rows.
        names: Names of kernels that were read.
    """

    arena: int
    alignment: int
    weights: int
    known: dict[int | tuple[int, int], ArenaSpan | WeightArgument] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def read(self, row: object) -> ArenaSpan | WeightArgument:
        if type(row) is not int:
            return self.place(row)
        known = self.known.get(row)
        if known is None:
            index = number(row, "call.weight", 0, self.weights - 1)
            known = self.known[index] = WeightArgument(index)
        return known

    def place(self, row: object) -> ArenaSpan:
        start, length = array(row, "place", 2)
        if type(start) is type(length) is int:
            known = self.known.get((start, length))
            if type(known) is ArenaSpan:
                return known
        offset = number(start, "place.offset", 0, self.arena)
        size = number(length, "place.size", 1, self.arena)
        if offset + size > self.arena or offset % self.alignment:
            raise FormatError(
                "place",
                f"[{offset}, +{size})",
                f"inside {self.arena}, aligned to {self.alignment}",
            )
        span = self.known[offset, size] = ArenaSpan(offset, size)
        return span


def _decode_fill(row: object, arguments: _Arguments) -> ArenaFill:
    offset, size, value = array(row, "fill", 3)
    return ArenaFill(arguments.place([offset, size]), number(value, "fill.value", 0, 255))


def _decode_launch(row: object, arguments: _Arguments) -> LaunchSpec:
    kernel, tasks, items, places, checks, work = array(row, "call", 6)
    name = text(kernel, "call.kernel")
    if name not in arguments.names:
        if not _KERNEL.fullmatch(name):
            raise FormatError("call.kernel", name[:40], "a label and 12 hexadecimal digits")
        arguments.names.add(name)
    group = number(items, "call.group", 1, MAX_GROUP)
    whole = number(tasks, "call.tasks", 1, MAX_TASKS)
    if whole % group:
        raise FormatError("call.tasks", str(whole), f"a multiple of {group}")
    return LaunchSpec(
        kernel=name,
        tasks=whole,
        group=group,
        arguments=tuple(map(arguments.read, array(places, "call.arguments"))),
        checks=truth(checks, "call.checks"),
        work=number(work, "call.work", 0, 1 << 62),
    )


def _decode_port(row: object, arena: int) -> ProgramPort:
    name, kind, dims, start = array(row, "port", 4)
    dtype = text(kind, "port.type")
    if dtype not in (*C_TYPES, HALF):
        raise FormatError("port.type", dtype[:40], "an element type")
    rows = array(dims, "port.shape")
    if len(rows) > MAX_RANK:
        raise FormatError("port.shape", f"rank {len(rows)}", f"at most {MAX_RANK}")
    shape = tuple(number(n, "port.shape", 0, MAX_BYTES) for n in rows)
    offset = number(start, "port.offset", 0, arena)
    if offset + prod(shape) * np.dtype(dtype).itemsize > arena:
        raise FormatError("port", f"{dtype}{list(shape)} at {offset}", f"inside {arena}")
    return ProgramPort(name=text(name, "port.name"), dtype=dtype, shape=shape, offset=offset)


def number(value: object, field: str, low: int, high: int) -> int:
    """A whole number in a range.

    Raises:
        FormatError: It is not.
    """
    if type(value) is not int or not low <= value <= high:  # a bool is an int, too
        raise FormatError(field, str(value)[:40], f"a whole number from {low} to {high}")
    return value


def truth(value: object, field: str) -> bool:
    """True or false.

    Raises:
        FormatError: It is neither.
    """
    if not isinstance(value, bool):
        raise FormatError(field, str(value)[:40], "true or false")
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
