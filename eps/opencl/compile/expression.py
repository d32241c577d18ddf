"""Elementwise expressions: built by lowering, merged by fusion, written as OpenCL C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.element_types import C_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set


@dataclass(frozen=True, slots=True)
class Arg:
    """Element of an operand."""

    index: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Literal:
    """The same number for every element."""

    value: float | int | bool
    dtype: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `SCALAR` applied to expressions; `dtype` is of the result."""

    function: str
    args: tuple[Expr, ...]
    dtype: str


Expr = Arg | Literal | Call

MOST_READABLE = 1 << 20
"""Bound of the whole numbers that are written in decimal, which is exact; others in hexadecimal."""

COMPARISONS = {"eq": "==", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}

_SHARED: Mapping[str, str] = {
    "neg": "(-{0})",
    "sqrt": "sqrt({0})",
    "rsqrt": "(1.0f / sqrt({0}))",
    "recip": "(1.0f / {0})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "round": "rint({0})",
    "pow": "pow({0}, {1})",
    "log": "log({0})",
    "log1p": "log1p({0})",
    "sin": "sin({0})",
    "cos": "cos({0})",
    "tan": "tan({0})",
    "asin": "asin({0})",
    "acos": "acos({0})",
    "atan": "atan({0})",
    "sinh": "sinh({0})",
    "cosh": "cosh({0})",
    "asinh": "asinh({0})",
    "acosh": "acosh({0})",
    "atanh": "atanh({0})",
    "fmod": "fmod({0}, {1})",
    "fma": "mad({0}, {1}, {2})",
}
LANES = frozenset({"float32", "int32", "int16", "int8", "uint8"})
"""Element types that there are vector expressions of."""

INTEGER_VECTOR: Mapping[str, str] = {"min": "min({0}, {1})", "max": "max({0}, {1})"}
"""Of integer vectors, besides sums, differences and products."""

VECTOR: Mapping[str, str] = {
    **_SHARED,
    "abs": "fabs({0})",
    "exp": "ol_exp({0})",
    "sigmoid": "ol_sigmoid({0})",
    "tanh": "ol_tanh({0})",
    "erf": "ol_erf({0})",
    "min": "select({1}, {0}, ({0} < {1}) | isnan({0}))",
    "max": "select({1}, {0}, ({0} > {1}) | isnan({0}))",
    "atmost": "select({1}, {0}, {0} < {1})",
    "atleast": "select({1}, {0}, {0} > {1})",
    "where": "select({2}, {1}, {0})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "not": "(~{0})",
    "isnan": "isnan({0})",
    "isinf": "isinf({0})",
}
"""Of float vectors; a truth value is a vector of integers, all bits set or none.

`atmost` and `atleast` are bounds that also replace NaN, in one instruction on x86.
"""

SCALAR: Mapping[str, str] = {
    **_SHARED,
    **{name: VECTOR[name] for name in ("sigmoid", "tanh", "erf", "exp")},
    "min": "(({0} < {1}) || ({0} != {0}) ? {0} : {1})",
    "max": "(({0} > {1}) || ({0} != {0}) ? {0} : {1})",
    "atmost": "({0} < {1} ? {0} : {1})",
    "atleast": "({0} > {1} ? {0} : {1})",
    "where": "({0} ? {1} : {2})",
    "and": "({0} && {1})",
    "or": "({0} || {1})",
    "not": "(!{0})",
    "xor": "(!{0} != !{1})",
    "isnan": "isnan({0})",
    "isinf": "isinf({0})",
    "mod": "({0} % {1})",
    "floormod": "(({0} % {1} + {1}) % {1})",
    "bitand": "({0} & {1})",
    "bitor": "({0} | {1})",
    "bitxor": "({0} ^ {1})",
    "bitnot": "(~{0})",
    "shl": "({0} << {1})",
    "shr": "({0} >> {1})",
}
_DOUBLE = {"exp": "exp({0})", "tanh": "tanh({0})", "erf": "erf({0})"}


def arguments(expr: Expr) -> set[int]:
    """Indices of the operands that `expr` reads."""
    if isinstance(expr, Arg):
        return {expr.index}
    if isinstance(expr, Call):
        return set().union(*(arguments(a) for a in expr.args))
    return set()


def substitute(expr: Expr, mapping: Mapping[int, Expr]) -> Expr:
    """`expr` with operands replaced."""
    if isinstance(expr, Arg):
        return mapping[expr.index]
    if isinstance(expr, Call):
        return Call(expr.function, tuple(substitute(a, mapping) for a in expr.args), expr.dtype)
    return expr


def size(expr: Expr) -> int:
    """Number of function calls in an expression."""
    return 1 + sum(size(a) for a in expr.args) if isinstance(expr, Call) else 0


def calls(expr: Expr, functions: Set[str]) -> bool:
    """Whether one of `functions` is called anywhere in it."""
    if not isinstance(expr, Call):
        return False
    return expr.function in functions or any(calls(a, functions) for a in expr.args)


def is_vectorisable(expr: Expr) -> bool:
    """Whether vectors can compute it; truth values only where they are made inside of it."""
    return expr.dtype in LANES and _has_vectors(expr)


def is_floating(expr: Expr) -> bool:
    """Whether vectors can compute it, and it reads and gives nothing but float32."""
    return expr.dtype == "float32" and _has_vectors(expr) and _all_floats(expr)


def _all_floats(expr: Expr) -> bool:
    if isinstance(expr, Call):
        return expr.dtype in ("float32", "bool") and all(map(_all_floats, expr.args))
    return expr.dtype == "float32"


def _has_vectors(expr: Expr) -> bool:
    if not isinstance(expr, Call):
        return expr.dtype in LANES
    name, dtypes = expr.function, {a.dtype for a in expr.args}
    if name == "cast":
        fits = expr.dtype in LANES and dtypes <= LANES
    elif expr.dtype in ("float32", "bool"):
        known = name in VECTOR or name in _INFIX or name in COMPARISONS
        fits = known and dtypes <= {"float32", "bool"}
    else:
        known = name in INTEGER_VECTOR or name in ("add", "sub", "mul")
        fits = known and expr.dtype in LANES and dtypes == {expr.dtype}
    return fits and all(map(_has_vectors, expr.args))


def vector_type(dtype: str, vector: int) -> str:
    """OpenCL C's name for a vector, or for one element; a truth value has an integer's width."""
    name = "int" if dtype == "bool" and vector > 1 else C_TYPES[dtype]
    return f"{name}{vector}" if vector > 1 else name


class ExpressionWriter:
    """Writes expressions as statements; a part that occurs twice is computed once."""

    def __init__(self, names: Mapping[int, str], *, vector: int = 1, prefix: str = "t") -> None:
        """`names` are the C names of the operands; `vector` lanes, 1 for scalars."""
        self._names = names
        self._vector = vector
        self._prefix = prefix
        self._known: dict[Expr, str] = {}
        self.lines: list[str] = []

    def write(self, expr: Expr) -> str:
        """The C name or literal of the value; its statements are in `lines`."""
        if isinstance(expr, Arg):
            return self._names[expr.index]
        if isinstance(expr, Literal):
            return literal(expr.value, expr.dtype, self._vector)
        variable = self._known.get(expr)
        if variable is None:
            variable = f"{self._prefix}{len(self._known)}"
            self._known[expr] = variable
            text = self._call(expr, [self.write(a) for a in expr.args])
            self.lines.append(f"const {vector_type(expr.dtype, self._vector)} {variable} = {text};")
        return variable

    def _call(self, expr: Call, args: Sequence[str]) -> str:
        name = expr.function
        if name in _INFIX:
            text = f"({args[0]} {_INFIX[name]} {args[1]})"
        elif name in COMPARISONS:
            text = f"({args[0]} {COMPARISONS[name]} {args[1]})"
        elif name == "cast":
            return self._cast(expr, args[0])
        elif self._vector > 1:
            integers = name in INTEGER_VECTOR and expr.dtype not in ("float32", "bool")
            text = (INTEGER_VECTOR if integers else VECTOR)[name].format(*args)
        elif name == "abs":
            text = f"fabs({args[0]})" if "float" in expr.dtype else f"abs({args[0]})"
        else:
            table = {**SCALAR, **_DOUBLE} if expr.dtype == "float64" else SCALAR
            text = table[name].format(*args)
        if self._vector == 1 and expr.dtype not in ("float32", "bool"):
            text = f"({C_TYPES[expr.dtype]}){text}"
        return text

    def _cast(self, expr: Call, text: str) -> str:
        """Float to integer rounds toward zero, to bool compares with zero.

        A cast of C does that to a scalar; Intel's `convert_<type>_rtz` was five times slower
        (2026.22).
        """
        if self._vector > 1:
            source, target = expr.args[0].dtype, vector_type(expr.dtype, self._vector)
            if source == "float32" and expr.dtype != "int32":
                text = f"convert_int{self._vector}({text})"
            return f"convert_{target}({text})"
        if expr.dtype == "bool":
            return f"({text} != 0)"
        return f"({C_TYPES[expr.dtype]}){text}"


def literal(value: float, dtype: str, vector: int = 1) -> str:
    """A number in OpenCL C, exact."""
    text = _number(value, dtype)
    return f"({vector_type(dtype, vector)})({text})" if vector > 1 else text


def _number(value: float, dtype: str) -> str:
    if dtype == "float32":
        return _float_text(np.float32(value))
    if dtype == "float64":
        return "NAN" if value != value else _infinite(value) or f"{float(value)!r}"
    if dtype == "bool":
        return str(int(value))
    suffix = {"int64": "L", "uint64": "UL", "uint32": "U"}.get(dtype, "")
    if int(value) == -(1 << 63):
        return "(-9223372036854775807L - 1)"
    return f"(({C_TYPES[dtype]}){int(value)}{suffix})"


def _float_text(value: np.float32) -> str:
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return _infinite(float(value))
    if (
        value == int(value)
        and abs(value) < MOST_READABLE
        and not (value == 0 and np.signbit(value))
    ):
        return f"{value:.1f}f" if value >= 0 else f"({value:.1f}f)"
    return f"({float(value).hex()}f)"


def _infinite(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return ""
