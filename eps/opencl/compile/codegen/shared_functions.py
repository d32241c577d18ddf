"""One function for kernels that differ in integer literals alone, which become its parameters.

A driver's compiler needs the same time for a function with the same body, whatever its sizes and
strides are. A function of a program with one entry is called from one place for each kernel, which
passes the literals; launches stay as they are (docs/adr/0049-one-function-for-equal-bodies.md).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from eps.opencl.compile.codegen.kernel import Kernel

    Numbers = tuple[int, ...]

FEWEST_LETTERS = 3000
"""Of a body that is shared: shorter ones compile in a few milliseconds, and some of them divide by
a literal for each element, which costs less than dividing by a variable."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_FIXED = re.compile(
    r"^\s*#.*$"  # pragmas
    r"|^\s*(?:\w+ )+\w+\[.*$"  # sizes of arrays
    r"|__(?:builtin|attribute)\w*\(.*$",  # arguments that have to be constants
    re.MULTILINE,
)
_MARK = "\0"
_LARGEST = (1 << 31) - 1
_MOST_TIMES = 16
_MOST_MORE = 32


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """How the entry calls the function of a kernel.

    Attributes:
        function: Name of the function.
        literals: Arguments after the pointers.
    """

    function: str
    literals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Template:
    """A body without its integer literals, and these."""

    text: str
    numbers: Numbers


def share_functions(
    kernels: Mapping[str, Kernel],
) -> tuple[dict[str, str], dict[str, FunctionCall]]:
    """The text after the return type of each function, and the call of each kernel.

    Args:
        kernels: By name, in the order of their first launches.

    Returns:
        Texts by name of the function; calls by name of the kernel, in the order of `kernels`.
    """
    texts: dict[str, str] = {}
    calls: dict[str, FunctionCall] = {}
    groups: dict[tuple[str, ...], dict[str, _Template]] = {}
    for name, kernel in kernels.items():
        template = _template_of(kernel.body)
        groups.setdefault((*kernel.parameters(), template.text), {})[name] = template
    for members in groups.values():
        first = next(iter(members))
        body = kernels[first].body
        if len(members) == 1 or len(body) < FEWEST_LETTERS:
            for name in members:
                texts[name] = function_text(name, kernels[name].parameters(), kernels[name].body)
                calls[name] = FunctionCall(name)
            continue
        rows = _rows_of(list(members.values()))
        expressions, literals = _choose_parameters(rows)
        declared = [f"const int literal{i}" for i in range(len(literals))]
        shared = _fill(members[first].text, (expressions[row] for row in rows))
        key = hashlib.sha256("".join([*kernels[first].parameters(), shared]).encode())
        function = f"{kernels[first].label.partition('_')[0]}_{key.hexdigest()[:12]}"
        texts[function] = function_text(function, [*kernels[first].parameters(), *declared], shared)
        for index, name in enumerate(members):
            calls[name] = FunctionCall(function, tuple(row[index] for row in literals))
    return texts, {name: calls[name] for name in kernels}


def function_text(name: str, parameters: Sequence[str], body: str) -> str:
    """A definition from its name on."""
    return f"{name}(\n    " + ",\n    ".join(parameters) + f")\n{{\n{body}\n}}\n"


def _template_of(body: str) -> _Template:
    numbers: list[int] = []

    def take(match: re.Match[str]) -> str:
        value = int(match[0])
        if value > _LARGEST:
            return match[0]
        numbers.append(value)
        return _MARK

    parts = []
    end = 0
    for fixed in _FIXED.finditer(body):
        parts += [_NUMBER.sub(take, body[end : fixed.start()]), fixed[0]]
        end = fixed.end()
    parts.append(_NUMBER.sub(take, body[end:]))
    return _Template("".join(parts), tuple(numbers))


def _rows_of(members: Sequence[_Template]) -> list[Numbers]:
    """For each literal of the body its value in every member."""
    return list(zip(*(member.numbers for member in members), strict=True))


def _choose_parameters(rows: Iterable[Numbers]) -> tuple[dict[Numbers, str], list[Numbers]]:
    """The C text of each literal, and the parameters' values in every member.

    A literal that is a small multiple of another one, or a little more, is computed from it: the
    rows of a tile are 1, 2 and 3 strides away, and need one register.
    """
    texts: dict[Numbers, str] = {}
    chosen: list[Numbers] = []
    for row in sorted(set(rows)):
        if len(set(row)) == 1:
            texts[row] = str(row[0])
            continue
        relations = [
            (times, abs(more), index, more)
            for index, base in enumerate(chosen)
            for times, more in _relations(row, base)
        ]
        if not relations:
            texts[row] = f"literal{len(chosen)}"
            chosen.append(row)
            continue
        times, _, index, more = min(relations)
        product = f"literal{index}" if times == 1 else f"literal{index} * {times}"
        sign = "-" if more < 0 else "+"
        texts[row] = f"({product} {sign} {abs(more)})" if more else f"({product})"
    return texts, chosen


def _relations(row: Numbers, base: Numbers) -> Iterator[tuple[int, int]]:
    """(times, more) with row = times * base + more in every member, if there is one."""
    first, other = next(
        (i, j) for i in range(len(base)) for j in range(len(base)) if base[i] != base[j]
    )
    times, rest = divmod(row[other] - row[first], base[other] - base[first])
    more = row[first] - times * base[first]
    if rest or not 1 <= times <= _MOST_TIMES or abs(more) > _MOST_MORE:
        return
    if all(value == times * start + more for value, start in zip(row, base, strict=True)):
        yield times, more


def _fill(text: str, expressions: Iterator[str]) -> str:
    first, *rest = text.split(_MARK)
    return "".join([first, *(next(expressions) + part for part in rest)])
