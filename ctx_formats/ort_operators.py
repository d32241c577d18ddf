"""Operators as a writer of the ORT format must know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.kernel_types import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtOperator:
    """The version of an operator that a model means.

    Attributes:
        since_version: Of its schema.
        places: Names in type constraints, or of parameters of a fixed type, with the formal
            parameters that each stands for.
        formal_inputs: How many formal inputs the schema has.
        is_variadic: Whether the last of them stands for any number of inputs.
    """

    since_version: int
    places: Mapping[str, Places]
    formal_inputs: int
    is_variadic: bool

    def count_inputs(self, inputs: int) -> list[int]:
        """How many of a node's inputs each formal input stands for: Node.input_arg_counts."""
        counts = [int(index < inputs) for index in range(self.formal_inputs)]
        if self.is_variadic and counts:
            counts[-1] = max(inputs - len(counts) + 1, 0)
        return counts
