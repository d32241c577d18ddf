"""The compatibility text in a model's metadata: read from a file, judged without a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.model_file import read_model_file
from ctx_formats.model_reader import read_model
from ctx_formats.stamped_file import StampedFile
from ort_lite.ep.interface import (
    Compatibility,
    CompiledModelCompatibility,
    SupportsEpContext,
    SupportsPayloadIdentity,
)
from ort_lite.providers import catalog
from ort_lite.providers.devices import chosen_provider
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.providers.devices import OrtEpDevice

METADATA_PREFIX = "ep_compatibility_info."


class CompatibilityInfoError(Fail, RuntimeError):
    """The error that onnxruntime raises as a plain RuntimeError in these functions."""


def get_compatibility_info_from_model(
    model_path: str | os.PathLike[str], ep_type: str
) -> str | None:
    """The compatibility text that a compiled model has for one execution provider.

    Args:
        model_path: A model file; neither payloads nor weights are looked at.
        ep_type: Name of the execution provider.

    Returns:
        The text, or None if the model has none.

    Raises:
        CompatibilityInfoError: There is no such file, or no model in it; a RuntimeError, too.
    """
    path = os.fspath(model_path)
    if not ep_type:
        raise _invalid_argument(
            "GetCompatibilityInfoFromModel", "the execution provider's name is empty"
        )
    if not path or not Path(path).exists():
        raise CompatibilityInfoError(f"Load model {path} failed. File doesn't exist")
    try:
        with StampedFile(path) as file:
            data = read_model_file(file, runs=False)
            file.require_unchanged()
        return _info(data.view, ep_type, path)
    except FormatError as exc:
        raise CompatibilityInfoError(f"Protobuf parsing failed. {exc}") from exc


def get_compatibility_info_from_model_bytes(
    model_data: bytes | bytearray | memoryview, ep_type: str
) -> str | None:
    """As `get_compatibility_info_from_model`, of a model in memory."""
    view = memoryview(model_data).cast("B")
    if not ep_type or not len(view):
        raise _invalid_argument(
            "GetCompatibilityInfoFromModelBytes", "the model or the execution provider is empty"
        )
    try:
        return _info(view, ep_type, "the model")
    except FormatError as exc:
        raise CompatibilityInfoError(f"Protobuf parsing failed. {exc}") from exc


def get_model_compatibility_for_ep_devices(
    ep_devices: Sequence[OrtEpDevice], compatibility_info: str
) -> CompiledModelCompatibility:
    """The verdict of an execution provider on a compatibility text.

    Args:
        ep_devices: Devices of one execution provider, which is opened on the first.
        compatibility_info: From `get_compatibility_info_from_model`.

    Returns:
        EP_NOT_APPLICABLE where the execution provider keeps no compiled models.

    Raises:
        CompatibilityInfoError: No devices, or of several execution providers.
        TypeError: An argument of another type, None among them.
        EPFail: The device is not there any more.
    """
    where = "GetModelCompatibilityForEpDevices"
    if not isinstance(ep_devices, list | tuple) or not isinstance(compatibility_info, str):
        raise TypeError(
            "get_model_compatibility_for_ep_devices expects a sequence of OrtEpDevice and a str, "
            f"got {type(ep_devices).__name__} and {type(compatibility_info).__name__}"
        )
    try:
        name, options = chosen_provider(ep_devices, {}, argument=where)
    except InvalidArgument as exc:
        raise _invalid_argument(where, exc.message) from exc
    entry = catalog.entries().get(name)
    if entry is None:
        raise _invalid_argument(where, f"No valid factory found for execution provider '{name}'.")
    ep = catalog.open_provider(entry, options)
    try:
        return judge_compatibility_info(ep, compatibility_info).verdict
    finally:
        ep.release()


def judge_compatibility_info(ep: ExecutionProvider, info: str) -> Compatibility:
    """The verdict of an open EP on a compatibility text; EP_NOT_APPLICABLE if it keeps no models.

    An EP that cannot take its own text apart has said all with it: equal or not.
    """
    if not isinstance(ep, SupportsEpContext):
        return Compatibility(CompiledModelCompatibility.EP_NOT_APPLICABLE)
    if isinstance(ep, SupportsPayloadIdentity):
        recorded = ep.identity_of_info(info)
        if recorded is not None:
            return ep.check_compatibility(recorded)
    elif info == ep.compatibility_info():
        return Compatibility(CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL)
    message = f"{ep.name} says that models compiled with '{info[:200]}' do not run here"
    return Compatibility(CompiledModelCompatibility.EP_UNSUPPORTED, Reason.VENDOR_REJECTED, message)


def _info(data: memoryview, ep_type: str, label: str) -> str | None:
    """A file without a graph has no metadata either: None, as in onnxruntime."""
    if not len(data):
        return None
    return read_model(data, file=label).metadata_props.get(METADATA_PREFIX + ep_type)


def _invalid_argument(function: str, why: str) -> CompatibilityInfoError:
    return CompatibilityInfoError(f"Invalid argument provided to {function}. {why}")
