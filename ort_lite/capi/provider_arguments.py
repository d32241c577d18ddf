"""Functions of onnxruntime's session module that check and translate arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.providers.memory_info import OrtDevice, OrtDeviceVendorId
from ort_lite.providers.provider_list import read_requests
from ort_lite.providers.warn_user import warn_user
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KINDS = ("cpu", "cuda", "cann", "dml", "gpu", "npu", "webgpu")
_VENDORS = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
    "webgpu": OrtDeviceVendorId.NONE,
}


def check_and_normalize_provider_args(
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
    provider_options: Sequence[Mapping[str, str]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Names and options of providers, a dict of texts for each; a UserWarning for unavailable ones.

    Args:
        providers: As for a session.
        provider_options: As for a session.
        available_provider_names: Names that cause no warning.

    Raises:
        ValueError: As for a session.
    """
    requests = read_requests(providers, provider_options)
    for request in requests:
        if request.name not in available_provider_names:
            warn_user(
                f"Specified provider '{request.name}' is not in available provider names."
                f"Available providers: '{', '.join(available_provider_names)}'"
            )
    return [request.name for request in requests], [dict(request.options) for request in requests]


def get_ort_device_type(device_type: str) -> int:
    """The number that OrtDevice has for "cpu", "cuda" and the like.

    Raises:
        InvalidArgument: There is no such kind of device.
    """
    if device_type not in _KINDS:
        raise InvalidArgument(
            f"Unsupported device type: {device_type}, expected one of {', '.join(_KINDS)}"
        )
    number: int = getattr(OrtDevice, device_type)()
    return number


def get_vendor_id_for_device_type(device_type: str) -> OrtDeviceVendorId | None:
    """The vendor that a name of a device implies; None if it implies none."""
    return _VENDORS.get(device_type)
