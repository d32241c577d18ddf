"""Rows and vectors folded into one number: several accumulators side by side, then their lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.opencl.compile.codegen.kernel import Code
    from eps.opencl.target import Target

    Combine = Callable[[str, str], str]
    Term = Callable[[str, int], tuple[list[str], str]]
    """Statements and value for the vector of some width at index `at`."""

CHAINS = 4
"""Registers that a row is folded into side by side: one step does not wait for the one before."""
LONG = 16
"""Vectors in a row from which on a remainder in single elements hardly counts."""


def add(a: str, b: str) -> str:
    """Text of the sum."""
    return f"{a} + {b}"


def larger(a: str, b: str) -> str:
    """Text of the maximum that keeps `a` where `b` is NaN; one instruction on x86."""
    return f"select({a}, {b}, {b} > {a})"


def row_vector(n: int, target: Target) -> int:
    """Width of vectors along a row of `n`: two registers where they leave little over."""
    fitting = (v for v in (target.pair, target.vector) if n % v == 0 or n >= LONG * v)
    vector = next(fitting, target.vector)
    while vector > n:
        vector //= 2
    return vector


def fold_lanes(code: Code, name: str, vector: int, combine: Combine) -> str:
    """One number of a vector's lanes, by halves; its C name."""
    while vector > 1:
        vector //= 2
        half = f"{name}_{vector}"
        code.add(f"const {floats(vector)} {half} = {combine(f'{name}.lo', f'{name}.hi')};")
        name = half
    return name


def fold_row(  # noqa: PLR0913 - a row, what is done with it, and where
    code: Code, n: int, vector: int, target: Target, into: str, term: Term, combine: Combine = add
) -> None:
    """Declare float `into`: the `term`s of indices 0 to n, combined; the sum or the maximum."""
    whole = n - n % vector
    chains = max(1, min(CHAINS * target.vector // vector, whole // vector))
    side = whole - whole % (vector * chains)
    names = [f"{into}{c}" for c in range(chains)]
    start = "0.0f" if combine is add else "-INFINITY"
    code.add(f"{floats(vector)} {', '.join(f'{name} = {start}' for name in names)};")
    code.open(f"for (int i = 0; i < {side}; i += {vector * chains})")
    for c, name in enumerate(names):
        _step(code, term(f"i + {c * vector}" if c else "i", vector), name, combine)
    code.close()
    for index in range(side, whole, vector):
        _step(code, term(str(index), vector), names[0], combine)
    for name in names[1:]:
        code.add(f"{names[0]} = {combine(names[0], name)};")
    code.add(f"float {into} = {fold_lanes(code, names[0], vector, combine)};")
    if whole < n:
        code.open(f"for (int i = {whole}; i < {n}; ++i)")
        _step(code, term("i", 1), into, combine)
        code.close()


def _step(code: Code, term: tuple[list[str], str], name: str, combine: Combine) -> None:
    statements, value = term
    code.add(f"{{ {' '.join([*statements, f'{name} = {combine(name, value)};'])} }}")
