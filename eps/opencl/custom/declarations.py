"""Operators of a user's own: declarations and functions in one text of OpenCL C.

    #pragma ort_lite operator com.acme.Shift <by: float = 1.0> (float[*S] x) => (float[*S] y)
    void shift(int item, __global const float* x, __global float* y, int S, float by) {
      y[item] = x[item] + by;
    }

Declarations follow ONNX's textual syntax (onnx/docs/Syntax.md). See docs/custom_kernels.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eps.opencl.custom.formulas import names_of
from eps.opencl.custom.operators import (
    CustomKernels,
    CustomOperator,
    DeclaredAttribute,
    DeclaredTensor,
)
from ort_lite.ep import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

OPTION = "custom_kernels"
MAX_TEXT = 1 << 20
"""Characters of all declarations and functions of a session."""

DTYPES: Mapping[str, str] = {
    "float": "float32",
    "double": "float64",
    **{name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32")},
    **{name: name for name in ("int64", "uint64", "bool")},
}
"""ONNX's names of the element types that kernels take, with numpy's."""

_FORM = "#pragma ort_lite operator DOMAIN.OP <ATTRIBUTES> (INPUTS) => (OUTPUTS)"
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+ort_lite\b[ \t]*(.*)$", re.MULTILINE)
_OPERATOR = re.compile(
    r"operator\s+(?P<name>[\w.]+)\s*(?:<(?P<attributes>[^<>]*)>)?"
    r"\s*\((?P<inputs>[^()]*)\)\s*=>\s*\((?P<outputs>.*)\)"
)
_FUNCTION = re.compile(r"^[ \t]*void\s+(\w+)\s*\(", re.MULTILINE)
_VALUE = re.compile(r"(\w+)\s*\[(.*)\]\s*(\w+)")
_ATTRIBUTE = re.compile(r"(\w+)\s*:\s*(float|int)\s*(?:=\s*(\S+))?")
_DIMENSION = re.compile(r"\*?[A-Za-z_]\w*|\d+")


def parse_custom_kernels(text: str) -> CustomKernels:
    """Read the declarations of a text.

    Raises:
        InvalidArgument: There is none, or one is wrong; says which, and what the form is.
    """
    if len(text) > MAX_TEXT:
        raise InvalidArgument(
            f"{OPTION} has {len(text)} characters, at most {MAX_TEXT} are allowed"
        )
    if "\0" in text:
        raise InvalidArgument(f"{OPTION} has a NUL character, which is not OpenCL C")
    joined = text.replace("\\\n", " ")
    pragmas = list(_PRAGMA.finditer(joined))
    operators: dict[tuple[str, str], CustomOperator] = {}
    for number, pragma in enumerate(pragmas):
        line = pragma[1].strip()
        if line.startswith("items"):
            if number == 0 or not pragmas[number - 1][1].startswith("operator"):
                raise _error(line, "no operator before it", "`items` right behind an `operator`")
            continue
        behind = pragmas[number + 1][1].strip() if number + 1 < len(pragmas) else ""
        items = behind[len("items") :].strip() if behind.startswith("items") else ""
        operator = _parse_operator(line, items, joined[pragma.end() :])
        key = operator.domain, operator.op_type
        if key in operators:
            raise _error(line, "the same operator a second time", "one declaration for each")
        operators[key] = operator
    if not operators:
        raise InvalidArgument(
            f"{OPTION} declares no operator; it is OpenCL C with lines of the form {_FORM} "
            "(the text itself, not the name of a file)"
        )
    return CustomKernels(text, operators)


def _parse_operator(line: str, items: str, rest: str) -> CustomOperator:
    match = _OPERATOR.fullmatch(line)
    if match is None:
        raise _error(line, "not a declaration", _FORM)
    domain, _, op_type = match["name"].rpartition(".")
    if not domain:
        raise _error(line, f"'{op_type}' without a domain", "DOMAIN.OP, such as com.acme.Shift")
    function = _FUNCTION.search(rest)
    if function is None:
        raise _error(line, "no function behind it", "void NAME(int item, ...)")
    operator = CustomOperator(
        domain="" if domain == "ai.onnx" else domain,
        op_type=op_type,
        attributes=tuple(_parse_attribute(line, t) for t in _split(match["attributes"] or "")),
        inputs=tuple(_parse_value(line, text) for text in _split(match["inputs"])),
        outputs=tuple(_parse_value(line, text) for text in _split(match["outputs"])),
        function=function[1],
        items=items,
    )
    for check in (_check_inputs, _check_formulas, _check_distinct):
        check(line, operator)
    return operator


def _check_inputs(line: str, operator: CustomOperator) -> None:
    if not operator.inputs or not operator.outputs:
        raise _error(line, "no input or no output", "at least one of each")
    for tensor in operator.inputs:
        for dim in tensor.dims:
            if _DIMENSION.fullmatch(dim) is None:
                raise _error(line, f"'{dim}' as a dimension of an input", "a name, *name or number")
        if sum(dim.startswith("*") for dim in tensor.dims) > 1:
            raise _error(line, f"two '*' dimensions of {tensor.name}", "at most one")


def _check_formulas(line: str, operator: CustomOperator) -> None:
    known = {n.removeprefix("*") for n in operator.dimensions}
    known |= {a.name for a in operator.attributes if a.kind == "int"}
    formulas = [operator.items] if operator.items else []
    for dim in (d for t in operator.outputs for d in t.dims):
        if not dim.startswith("*"):
            formulas.append(dim)
        elif dim not in operator.dimensions:
            raise _error(line, f"'{dim}' of an output", "a '*' dimension of an input")
    for formula in formulas:
        try:
            names = names_of(formula)
        except ValueError as exc:
            form = "names, whole numbers, + - * / % and parentheses"
            raise _error(line, f"'{formula}'", form) from exc
        if names - known:
            raise _error(line, f"'{min(names - known)}' in '{formula}'", f"one of {sorted(known)}")


def _check_distinct(line: str, operator: CustomOperator) -> None:
    names = [t.name for t in (*operator.inputs, *operator.outputs)]
    names += [n.removeprefix("*") for n in operator.dimensions]
    names += [a.name for a in operator.attributes]
    twice = next((n for n in names if names.count(n) > 1), "")
    if twice:
        raise _error(line, f"the name '{twice}' twice", "different names")


def _parse_value(line: str, text: str) -> DeclaredTensor:
    match = _VALUE.fullmatch(text)
    if match is None:
        raise _error(line, f"'{text}'", "TYPE[DIMENSIONS] NAME, such as float[N, C] x")
    dtype = DTYPES.get(match[1])
    if dtype is None:
        raise _error(line, f"element type '{match[1]}'", f"one of {', '.join(DTYPES)}")
    return DeclaredTensor(match[3], dtype, tuple(_split(match[2])))


def _parse_attribute(line: str, text: str) -> DeclaredAttribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise _error(line, f"'{text}'", "NAME: float or NAME: int, with = VALUE for a default")
    name, kind, default = match.groups()
    try:
        value = None if default is None else (float if kind == "float" else int)(default)
    except ValueError as exc:
        raise _error(
            line, f"'{default}' as a default of {name}", f"a number of type {kind}"
        ) from exc
    return DeclaredAttribute(name, kind, value)


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets and parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[(") - (char in "])")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts] if text.strip() else []


def _error(line: str, what: str, expected: str) -> InvalidArgument:
    return InvalidArgument(f"{OPTION}: {what} in '#pragma ort_lite {line}'; expected {expected}")
