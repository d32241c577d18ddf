"""The text of a program: what its kernels share, then each different kernel once."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.codegen.kernel import Kernel
    from eps.opencl.device import Target


def write_source(kernels: Sequence[Kernel], target: Target) -> tuple[str, list[str]]:
    """The program, and the name of each call's kernel."""
    texts: dict[str, str] = {}
    names = []
    for kernel in kernels:
        head = f"({kernel.parameters()})"
        group = f"__attribute__((reqd_work_group_size({kernel.group}, 1, 1)))"
        key = hashlib.sha256(f"{group}{head}{kernel.body}".encode()).hexdigest()[:12]
        name = f"{kernel.label}{key}"
        before = f"{target.attributes}{group} __kernel void"
        texts.setdefault(name, f"{before} {name}{head} {{\n{kernel.body}\n}}\n")
        names.append(name)
    body = "\n".join(texts.values())
    return f"{_shared(body, target)}\n{body}", names


def _shared(body: str, target: Target) -> str:
    """What `body` needs before it."""
    lines = [inlined()] if target.calls_builtins else []
    if "ol_madd" in body or "ol_dot" in body:
        lines += [*(["#define OL_AVX2"] if target.multiplies_pairs else []), _text("integer.cl")]
    if "double" in body:
        lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    if "ol_" in body:
        lines.append(_text("prelude.cl"))
        widths = [w for w in (2, 4, 8, 16) if f"float{w}" in body]
        lines += [f"OL_FUNCTIONS(float{w}, int{w})" for w in widths]
    return "\n".join(lines)


def inlined() -> str:
    """OpenCL's functions in terms of the language, for a driver that would call its own."""
    return _text("inlined.cl")


def _text(name: str) -> str:
    return files("eps.opencl.codegen").joinpath(name).read_text(encoding="utf-8")
