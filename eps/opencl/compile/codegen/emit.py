"""The text of a program: what its kernels share, then each different kernel once."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.shared_functions import function_text, share_functions
from eps.opencl.program_spec import ENTRY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.codegen.shared_functions import FunctionCall
    from eps.opencl.target import Target


KERNEL = "__kernel void"
FUNCTION = "__attribute__((noinline)) void"
"""Inlined they would make the entry one large function, which compilers may take long for."""


INLINED_MAD = "#define mad(a, b, c) ((a) * (b) + (c))"
"""For Intel's compiler, which compiles twelve regular expressions for each call in a program, twice
(2026.22.10): without these calls it needs a tenth less time. -cl-mad-enable fuses it again."""


def emit_program(
    kernels: Sequence[Kernel], target: Target, *, entry: bool = False
) -> tuple[str, list[str]]:
    """The program, and the name of each call's kernel.

    Args:
        kernels: In the order of the calls; not empty with `entry`.
        target: The device.
        entry: Whether they are functions that one kernel, `ENTRY`, calls by their number in the
            order of the first calls.
    """
    distinct: dict[str, Kernel] = {}
    names = []
    for kernel in kernels:
        head = "(\n    " + ",\n    ".join(kernel.parameters()) + ")"
        group = _group_attribute(kernel.group)
        key = hashlib.sha256(f"{group}{head}{kernel.body}".encode()).hexdigest()[:12]
        name = f"{kernel.label}{key}"
        distinct.setdefault(name, kernel)
        names.append(name)
    includes = _include_texts(kernels)
    if entry:
        functions, calls = share_functions(distinct)
        texts = [f"{FUNCTION} {text}" for text in functions.values()]
        texts.append(_emit_entry(distinct, calls, target))
    else:
        texts = [
            f"{target.attributes}{_group_attribute(kernel.group)}\n{KERNEL} "
            + function_text(name, kernel.parameters(), kernel.body)
            for name, kernel in distinct.items()
        ]
    body = "\n".join([*includes, *texts])
    return f"{_emit_preamble(body, target)}\n{body}", names


def _include_texts(kernels: Sequence[Kernel]) -> list[str]:
    """The user's texts, each once; a build log counts their lines from 1."""
    texts = dict.fromkeys(kernel.include for kernel in kernels if kernel.include)
    return [f'#line 1 "custom_kernels"\n{text}\n#line 1 "program"\n' for text in texts]


def _group_attribute(size: int) -> str:
    return f"__attribute__((reqd_work_group_size({size}, 1, 1)))"


def _emit_entry(
    kernels: Mapping[str, Kernel], calls: Mapping[str, FunctionCall], target: Target
) -> str:
    """The kernel that calls the functions of `kernels`; an item is a group of its own."""
    most = max(len(kernel.parameters()) for kernel in kernels.values())
    parameters = ", ".join(["const int number", *(f"__global char* a{i}" for i in range(most))])
    cases = []
    for number, (name, kernel) in enumerate(kernels.items()):
        types = (text.rpartition(" ")[0] for text in kernel.parameters())
        arguments = [f"({kind})a{i}" for i, kind in enumerate(types)]
        call = calls[name]
        arguments += map(str, call.literals)
        cases.append(f"    case {number}: {call.function}({', '.join(arguments)}); break;")
    head = f"{target.attributes}{_group_attribute(1)} {KERNEL} {ENTRY}({parameters})"
    return "\n".join([f"{head} {{", "  switch (number) {", *cases, "  }", "}", ""])


def _emit_preamble(body: str, target: Target) -> str:
    """Definitions that `body` needs."""
    lines = [read_inlined_builtins()] if target.calls_builtins else []
    if target.one_entry:
        lines.append(INLINED_MAD)
    if "ol_madd" in body or "ol_dot" in body:
        lines += [*(["#define OL_AVX2"] if target.multiplies_pairs else []), _text("integer.cl")]
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
