"""Facts about a model's operators with which kernels are found without operator schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    Places = tuple[tuple[bool, int], ...]
    """Formal parameters: whether it is an input, and its index."""


@dataclass(frozen=True, slots=True)
class KernelTypes:
    """The operators of a model in the ORT format, versions 5 and 6.

    Attributes:
        since_versions: Version of each operator's schema by domain ("" for ai.onnx) and type.
        places: For each (domain, type, version) the names in its type constraints, or of formal
            parameters of a fixed type, with the parameters that each stands for.
        has_defaults: Whether nodes have all attributes that their schemas have defaults of.
    """

    since_versions: Mapping[tuple[str, str], int]
    places: Mapping[tuple[str, str, int], Mapping[str, Places]]
    has_defaults: bool = False

    def find(self, domain: str, op_type: str) -> tuple[int, Mapping[str, Places]] | None:
        """Version and type names of an operator; None if they are not known."""
        version = self.since_versions.get((domain, op_type))
        places = None if version is None else self.places.get((domain, op_type, version))
        return None if version is None or places is None else (version, places)
