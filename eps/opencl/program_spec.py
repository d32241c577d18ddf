"""A compiled partition as plain values: source, launches, memory and weights, without a device."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.container import payload_digest
from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.compile.tilings import Problem, Tiling


_WINOGRAD = re.compile(r"winograd(\d)_")
"""See `codegen/winograd.py`: the name of a kernel that interpolates the results."""


INTEGER_LABEL = "integer_"
"""Prefix of the names of kernels that sum products of integers."""

_READS_IN_ORDER = re.compile(r"weights\d+bit_|weight_rows_|cache_|attention_")
"""Names of products with weights of few bits (`codegen/block_matmul.py`), which read all of them in
order, and of kernels that read a few rows of a table (`block_gather.py`, `cache_place.py`)."""

ENTRY = "entry"
"""Name of a program's only kernel, where it has one that calls all others."""

CHAIN_ARGUMENTS = 3
"""Of the entry for a chain, after its number: tables of addresses and of calls, and counters."""
CHAIN_COUNTERS = 16
"""Counters of a call in a chain, two of which are used: a line of the cache is one call's own."""


def chain_row_size(most: int) -> int:
    """Integers of a call in the table that chains read: its function, its items, its addresses.

    Args:
        most: Arguments that the entry has for a function.
    """
    return most + 2


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant as its bytes in memory.

    Attributes:
        digest: BLAKE3 of the bytes, in hex.
        data: Read-only; keeps its buffer alive.
    """

    digest: str
    data: memoryview


def weight_of(data: memoryview) -> Weight:
    """The bytes with their digest."""
    return Weight(payload_digest(data), data.toreadonly())


@dataclass(frozen=True, slots=True)
class ArenaSpan:
    """A range of bytes in the arena."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ArenaFill:
    """The value of every byte of a range of the arena before the first run."""

    place: ArenaSpan
    value: int


@dataclass(frozen=True, slots=True)
class WeightArgument:
    """An argument of a launch: the weight at an index of the spec."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """One kernel launch.

    Attributes:
        kernel: Name in the source; of a function where the program has an entry.
        tasks: Global size, a multiple of `group`.
        group: Local size.
        arguments: Buffers in the order of the parameters.
        checks: Whether the flag for bad indices is a last argument.
        work: Floating-point operations, for reports.
    """

    kernel: str
    tasks: int
    group: int
    arguments: tuple[ArenaSpan | WeightArgument, ...]
    checks: bool = False
    work: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPort:
    """An input or output: row-major at `offset` bytes of the arena."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        """Size of the tensor in bytes."""
        return prod(self.shape) * int(np.dtype(self.dtype).itemsize)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUses:
    """The arguments of launches that are the memory of inputs and outputs.

    An argument is (index of the call, index in its arguments). None in place of a port's
    arguments: the port shares a buffer with other values, or a kernel writes over an input, so
    that a tensor of the user's is copied into the arena or out of it.

    Attributes:
        in_place: (input, output) pairs that may be the same memory in one run, because one kernel
            reads and writes it element by element. Earlier releases list the pairs, too, whose
            output is first written after the last call that reads the input.
    """

    inputs: tuple[tuple[tuple[int, int], ...] | None, ...]
    outputs: tuple[tuple[tuple[int, int], ...] | None, ...]
    in_place: frozenset[tuple[int, int]] = frozenset()

    def may_share(self, source: int, output: int) -> bool:
        """Whether an input and an output of one size may be the same memory in a run."""
        if (source, output) in self.in_place:
            return True
        read, made = self.inputs[source], self.outputs[output]
        if not read or not made:
            return False
        return max(read)[0] < min(made)[0]

    @property
    def sides(self) -> tuple[tuple[tuple[tuple[int, int], ...] | None, ...], ...]:
        """Of inputs, of outputs."""
        return self.inputs, self.outputs


@dataclass(frozen=True, slots=True)
class ProgramPart:
    """A program of the driver's with some of a spec's functions, built alongside the others.

    Attributes:
        functions: Indices into `ProgramSpec.functions`.
        source: Its OpenCL C; "" where a payload has its binary.
    """

    functions: tuple[int, ...]
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSpec:
    """A program's source, its calls, and the memory that they touch.

    Attributes:
        arena: Size of the device memory for inputs, outputs and temporaries in bytes; zeroed first.
        kept: Bytes at its start that only this program may write; other programs may use the rest
            between runs. None where an earlier release made the payload: all of it.
        weights: Constants; no two have the same content.
        tuned: Tilings that tuning measured, instead of those of the rule.
        fills: Ranges of the arena that do not start as zeros.
        entry: Whether the program's only kernel is `ENTRY`: its first argument says which of
            `functions` it calls, the others are for that.
        rewritings: For `explain()`: operators that became several operations.
        port_uses: None where an earlier release made the payload: bound tensors are copied.
        parts: Programs that are built in place of `source`, each function in one of them; empty
            where one program has all.
        chains: Ranges of calls that one launch runs; the functions of each are in one part.
    """

    source: str
    options: str
    calls: tuple[LaunchSpec, ...]
    arena: int
    weights: tuple[Weight, ...]
    inputs: tuple[ProgramPort, ...]
    outputs: tuple[ProgramPort, ...]
    tuned: Mapping[Problem, Tiling] = field(default_factory=dict)
    fills: tuple[ArenaFill, ...] = ()
    entry: bool = False
    kept: int | None = None
    port_uses: PortUses | None = None
    rewritings: tuple[str, ...] = ()
    parts: tuple[ProgramPart, ...] = ()
    chains: tuple[tuple[int, int], ...] = ()

    @property
    def stream_digests(self) -> frozenset[str]:
        """Digests of weights that each run reads in order, or a few rows of."""
        in_order = {name for name in self.functions if _READS_IN_ORDER.match(name)}
        indices = {
            argument.index
            for call in self.calls
            if call.kernel in in_order
            for argument in call.arguments
            if isinstance(argument, WeightArgument)
        }
        return frozenset([self.weights[index].digest for index in indices])

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that launches call, in the order of their first call."""
        return tuple(dict.fromkeys(call.kernel for call in self.calls))

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the program's kernels."""
        return (ENTRY,) if self.entry else self.functions

    @property
    def part_of_function(self) -> Mapping[int, int]:
        """Index of the part that contains each function; empty for a program in one piece."""
        return {number: i for i, part in enumerate(self.parts) for number in part.functions}

    @property
    def parts_of_chains(self) -> tuple[int | None, ...]:
        """Index of the part that has the functions of each chain; None where two have them."""
        numbers = {name: number for number, name in enumerate(self.functions)}
        of_function = self.part_of_function
        used = [
            {of_function.get(numbers[call.kernel], 0) for call in self.calls[begin:end]}
            for begin, end in self.chains
        ]
        return tuple(parts.pop() if len(parts) == 1 else None for parts in used)

    @property
    def most_arguments(self) -> int:
        """Largest number of arguments of a launch, including the flag for bad indices."""
        return max((len(call.arguments) + call.checks for call in self.calls), default=0)

    def bytes_of(self, call: LaunchSpec) -> int:
        """Size of everything that a call may read and write, each once."""
        return sum(
            self.weights[a.index].data.nbytes if isinstance(a, WeightArgument) else a.size
            for a in set(call.arguments)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for a user on how operations are computed, one line each."""
        integers = sum(call.kernel.startswith(INTEGER_LABEL) for call in self.calls)
        tiles = Counter(m[1] for call in self.calls if (m := _WINOGRAD.match(call.kernel)))
        summed = (f"products and convolutions of 8-bit integers: {integers}",) if integers else ()
        winograd = tuple(
            f"3x3 convolutions as Winograd's F({m}x{m}, 3x3): {count}"
            for m, count in sorted(tiles.items())
        )
        return (*summed, *winograd, *self.rewritings)

    @property
    def checks(self) -> bool:
        """Whether a launch may report an index that is out of range."""
        return any(call.checks for call in self.calls)
