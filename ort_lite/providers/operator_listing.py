"""Operators and kernels listed, as onnxruntime's binding does for tools that make documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ort_lite.ep.kernels import SupportsKernelListing
from ort_lite.providers import catalog
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelListing:
    """A kernel of an execution provider, as a listing shows it; KernelDef of onnxruntime's binding.

    Attributes:
        version_range: First and last version of the operator.
        type_constraints: Types by the name of a type parameter.
    """

    op_name: str
    domain: str
    provider: str
    version_range: tuple[int, int]
    type_constraints: Mapping[str, Sequence[str]]


def get_registered_ep_kernel_defs(ep_name: str) -> list[KernelListing]:
    """Kernels of one execution provider; none of one that compiles whole graphs.

    Raises:
        BindingError: It is not installed, or finds no device; a RuntimeError, too.
    """
    entry = catalog.entries().get(ep_name)
    if entry is None or not entry.load().probe().devices:
        raise BindingError(
            f"No devices found for EP '{ep_name}'. Installed: {', '.join(catalog.entries())}; "
            "register_execution_provider_library() adds one"
        )
    ep = catalog.open_provider(entry, {})
    try:
        if not isinstance(ep, SupportsKernelListing):
            return []
        return [
            KernelListing(
                op_name=definition.op_type,
                domain=definition.domain,
                provider=ep_name,
                version_range=(definition.since[0], definition.since[1] or definition.since[0]),
                type_constraints={
                    name: sorted(types) for name, types in definition.type_constraints.items()
                },
            )
            for definition in ep.list_kernels()
        ]
    finally:
        ep.release()


def get_all_opkernel_def() -> list[KernelListing]:
    """Kernels of all installed execution providers that list any."""
    return [
        listed
        for name, entry in catalog.entries().items()
        if entry.load().probe().devices
        for listed in get_registered_ep_kernel_defs(name)
    ]


def get_all_operator_schema() -> list[Any]:
    """Schemas of all operators of ONNX, in all versions: `onnx.defs.OpSchema`.

    They have the attributes of onnxruntime's own class. Operators of com.microsoft have kernels
    here, and no schemas.
    """
    from onnx import defs  # noqa: PLC0415 - lazy: rare

    return list(defs.get_all_schemas_with_history())
