"""The text of a program: what its kernels share, then each different kernel once."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.chains import (
    CHAIN_ITEM,
    NO_PAUSE,
    PAUSE,
    emit_chain_entry,
    name_item,
)
from eps.opencl.compile.codegen.divide_chains import cut_chains, divide_calls
from eps.opencl.compile.codegen.divide_functions import divide_functions
from eps.opencl.compile.codegen.kernel import ITEM
from eps.opencl.compile.codegen.shared_functions import (
    FunctionCall,
    function_text,
    share_functions,
)
from eps.opencl.program_spec import ENTRY, ProgramPart

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.target import Target


KERNEL = "__kernel void"
PART = "part_"
"""What the name of a function begins with that is part of a joined kernel."""
FUNCTION = "__attribute__((noinline)) void"
"""Inlined they would make the entry one large function, which compilers may take long for."""


INLINED_MAD = "#define mad(a, b, c) ((a) * (b) + (c))"
"""For Intel's compiler, which compiles twelve regular expressions for each call in a program, twice
(2026.22.10): without these calls it needs a tenth less time. -cl-mad-enable fuses it again."""


@dataclass(frozen=True, slots=True)
class EmittedProgram:
    """The text of a program.

    Attributes:
        names: The kernel of each call.
        parts: See ProgramSpec.
        chains: See ProgramSpec; each is in one part.
    """

    source: str
    names: list[str]
    parts: tuple[ProgramPart, ...] = ()
    chains: tuple[tuple[int, int], ...] = ()


def emit_program(
    kernels: Sequence[Kernel],
    target: Target,
    *,
    entry: bool = False,
    chains: Sequence[tuple[int, int]] = (),
) -> EmittedProgram:
    """The program, and the same in parts where the target builds several at once.

    Args:
        kernels: In the order of the calls; not empty with `entry`.
        target: The device.
        entry: Whether they are functions that one kernel, `ENTRY`, calls by their number in the
            order of the first calls.
        chains: Ranges of calls that the entry runs, see `chains.py`.
    """
    distinct: dict[str, Kernel] = {}
    names = []
    for kernel in kernels:
        name = _name_of(kernel)
        distinct.setdefault(name, kernel)
        names.append(name)
    includes = _include_texts(kernels)
    if chains:
        return _emit_chained(distinct, names, target, chains, includes)
    parts: list[ProgramPart] = []
    if entry:
        functions, calls = share_functions(_single_kernels(distinct))
        texts = _emit_functions(functions, functions)
        texts.append(_emit_entry(distinct, calls, target))
        needed = {name: _functions_of(name, kernel, calls) for name, kernel in distinct.items()}
        for chosen in divide_functions(functions, list(needed.values()), target.builds_at_once):
            numbers = [i for i, name in enumerate(distinct) if needed[name] <= chosen]
            own = _emit_functions(functions, chosen)
            own.append(_emit_entry(distinct, calls, target, numbers))
            text = "\n".join([*includes, *own])
            parts.append(ProgramPart(tuple(numbers), f"{_emit_preamble(text, target)}\n{text}"))
    else:
        joined = {name: kernel for name, kernel in distinct.items() if kernel.parts}
        texts = [
            "void " + function_text(PART + name, kernel.parameters(), kernel.body)
            for name, kernel in _single_kernels(joined).items()
        ]
        texts += [
            f"{target.attributes}{_group_attribute(kernel.group)}\n{KERNEL} "
            + function_text(name, kernel.parameters(), _body_of(kernel))
            for name, kernel in distinct.items()
        ]
    body = "\n".join([*includes, *texts])
    return EmittedProgram(f"{_emit_preamble(body, target)}\n{body}", names, tuple(parts))


def _emit_chained(
    kernels: Mapping[str, Kernel],
    names: list[str],
    target: Target,
    chains: Sequence[tuple[int, int]],
    includes: Sequence[str],
) -> EmittedProgram:
    """A program with chains, in parts that have all calls of their functions.

    Args:
        kernels: By name.
        names: The kernel of each call.
        target: The device.
        chains: Ranges of calls.
        includes: Texts of the user's.
    """
    functions, calls = share_functions(_single_kernels(kernels))
    needed = {name: _functions_of(name, kernel, calls) for name, kernel in kernels.items()}
    ranges = divide_calls(names, needed, functions, target.builds_at_once)
    chains = cut_chains(chains, ranges)
    numbers = {name: number for number, name in enumerate(kernels)}

    def emit(called: Collection[str]) -> str:
        chosen = frozenset().union(*(needed[name] for name in called))
        cases = _emit_cases(kernels, calls, CHAIN_ITEM, [numbers[name] for name in called])
        head, most = _entry_head(target), _most_parameters(kernels)
        text = "\n".join(
            [
                *includes,
                *(
                    f"{FUNCTION} {name_item(functions[name])}"
                    for name in functions
                    if name in chosen
                ),
                emit_chain_entry(head, FUNCTION, most, len(kernels), len(chains), cases),
            ]
        )
        return f"{_emit_preamble(text, target)}\n{text}"

    parts = []
    for begin, end in ranges:
        called = sorted(set(names[begin:end]), key=numbers.__getitem__)
        parts.append(ProgramPart(tuple(numbers[name] for name in called), emit(called)))
    return EmittedProgram(emit(kernels), names, tuple(parts), chains)


def _emit_functions(functions: Mapping[str, str], chosen: Collection[str]) -> list[str]:
    return [f"{FUNCTION} {text}" for name, text in functions.items() if name in chosen]


def _functions_of(name: str, kernel: Kernel, calls: Mapping[str, FunctionCall]) -> frozenset[str]:
    """Names of the functions that the entry calls for a kernel."""
    return frozenset(calls[single].function for single in _single_kernels({name: kernel}))


def _name_of(kernel: Kernel) -> str:
    """Its label and a digest of what it does."""
    if kernel.parts:
        text = ";".join(
            f"{_name_of(part.kernel)} {part.first} {part.kernel.tasks} {part.operands}"
            for part in kernel.parts
        )
    else:
        head = "(\n    " + ",\n    ".join(kernel.parameters()) + ")"
        text = f"{_group_attribute(kernel.group)}{head}{kernel.body}"
    return kernel.label + hashlib.sha256(text.encode()).hexdigest()[:12]


def _single_kernels(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Kernels by name, joined ones as their parts."""
    single: dict[str, Kernel] = {}
    for name, kernel in kernels.items():
        if kernel.parts:
            single.update((_name_of(part.kernel), part.kernel) for part in kernel.parts)
        else:
            single[name] = kernel
    return single


def _body_of(kernel: Kernel) -> str:
    """The body of a kernel of its own; a joined one calls its parts."""
    if not kernel.parts:
        return kernel.body
    calls = {name: FunctionCall(PART + name) for name in _single_kernels({"": kernel})}
    own = [text.rpartition(" ")[2] for text in kernel.parameters()]
    return "\n".join(f"  {line}" for line in _call_parts(kernel, own, calls))


def _call_parts(
    kernel: Kernel, own: Sequence[str], calls: Mapping[str, FunctionCall], item: str = ITEM
) -> list[str]:
    """A statement for each part, on its work-items; `own` are the names of the parameters.

    `item` is the text of the index of a work-item; unless it is `ITEM`, functions are passed it.
    """
    lines = []
    for part in kernel.parts:
        indices = [*part.operands, *([len(kernel.operands)] if part.kernel.checks else [])]
        end = part.first + part.kernel.tasks
        begins = f"{item} >= {part.first} && " if part.first else ""
        call = _call(part.kernel, [own[i] for i in indices], calls[_name_of(part.kernel)], item)
        lines.append(f"if ({begins}{item} < {end}) {call};")
    return lines


def _call(kernel: Kernel, pointers: Sequence[str], call: FunctionCall, item: str = ITEM) -> str:
    """C text that calls the function of a kernel with pointers of other types."""
    types = (text.rpartition(" ")[0] for text in kernel.parameters())
    arguments = [f"({kind}){text}" for kind, text in zip(types, pointers, strict=True)]
    first = [] if item == ITEM else [item]
    return f"{call.function}({', '.join([*first, *arguments, *map(str, call.literals)])})"


def _include_texts(kernels: Sequence[Kernel]) -> list[str]:
    """The user's texts, each once; a build log counts their lines from 1."""
    texts = dict.fromkeys(kernel.include for kernel in kernels if kernel.include)
    return [f'#line 1 "custom_kernels"\n{text}\n#line 1 "program"\n' for text in texts]


def _group_attribute(size: int) -> str:
    return f"__attribute__((reqd_work_group_size({size}, 1, 1)))"


def _emit_entry(
    kernels: Mapping[str, Kernel],
    calls: Mapping[str, FunctionCall],
    target: Target,
    numbers: Collection[int] | None = None,
) -> str:
    """The kernel that calls the functions of `kernels`; an item is a group of its own.

    Args:
        kernels: By name.
        calls: Of each kernel.
        target: The device.
        numbers: Of the kernels that it can call; None for all.
    """
    pointers = (f"__global char* a{i}" for i in range(_most_parameters(kernels)))
    parameters = ", ".join(["const int number", *pointers])
    cases = _emit_cases(kernels, calls, ITEM, numbers)
    head = f"{_entry_head(target)}({parameters})"
    return "\n".join([f"{head} {{", "  switch (number) {", *cases, "  }", "}", ""])


def _emit_cases(
    kernels: Mapping[str, Kernel],
    calls: Mapping[str, FunctionCall],
    item: str,
    numbers: Collection[int] | None = None,
) -> list[str]:
    """The cases of a switch over the kernels; `item` as in `_call_parts`."""
    cases = []
    for number, (name, kernel) in enumerate(kernels.items()):
        if numbers is not None and number not in numbers:
            continue
        own = [f"a{i}" for i in range(len(kernel.parameters()))]
        if kernel.parts:
            statements = _call_parts(kernel, own, calls, item)
        else:
            statements = [f"{_call(kernel, own, calls[name], item)};"]
        cases.append(f"    case {number}: {' '.join(statements)} break;")
    return cases


def _most_parameters(kernels: Mapping[str, Kernel]) -> int:
    return max(len(kernel.parameters()) for kernel in kernels.values())


def _entry_head(target: Target) -> str:
    return f"{target.attributes}{_group_attribute(1)} {KERNEL} {ENTRY}"


def _emit_preamble(body: str, target: Target) -> str:
    """Definitions that `body` needs."""
    lines = [read_inlined_builtins()] if target.calls_builtins else []
    if target.one_entry:
        lines.append(INLINED_MAD)
    if target.quad_sums and ("ol_dot" in body or "ol_quads" in body):
        lines.append(f"#define {target.quad_sums}")
    if "ol_madd" in body or "ol_dot" in body:
        lines += [*(["#define OL_AVX2"] if target.multiplies_pairs else []), _text("integer.cl")]
    if "ol_quads" in body:
        lines.append(_text("vnni.cl"))
    if "ol_pause" in body:
        lines.append(PAUSE if target.multiplies_pairs else NO_PAUSE)
    if "double" in body:
        lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    if "ol_" in body:
        lines.append(_text("prelude.cl"))
        widths = [w for w in (2, 4, 8, 16) if f"float{w}" in body]
        lines += [f"OL_FUNCTIONS(float{w}, int{w})" for w in widths]
    return "\n".join(lines)


def read_inlined_builtins() -> str:
    """OpenCL's functions in terms of the language, for a driver that would call its own."""
    return _text("inlined.cl")


def _text(name: str) -> str:
    return files("eps.opencl.compile.codegen").joinpath(name).read_text(encoding="utf-8")
