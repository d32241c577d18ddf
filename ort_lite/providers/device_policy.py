"""Execution providers chosen by a policy: `SessionOptions.set_provider_selection_policy`.

As ONNX Runtime chooses (core/session/provider_policy_context.cc). It prefers a device whose
vendor is the execution provider's, too; here the order of preference among the installed
ones (`get_available_providers`) decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.named_enum import NamedIntEnum
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.devices import OrtEpDevice, OrtHardwareDeviceType, get_ep_devices
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.model.info import ModelMetadata

    Delegate = Callable[
        [Sequence[OrtEpDevice], Mapping[str, str], Mapping[str, str], int], Sequence[OrtEpDevice]
    ]

MAX_SELECTED = 8
"""Devices that a delegate may select, as in ONNX Runtime."""

CPU, GPU, NPU = (
    OrtHardwareDeviceType.CPU,
    OrtHardwareDeviceType.GPU,
    OrtHardwareDeviceType.NPU,
)


class OrtExecutionProviderDevicePolicy(NamedIntEnum):
    """OrtExecutionProviderDevicePolicy of onnxruntime_c_api.h."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class MeasuredPolicy(NamedIntEnum):
    """Policies that ONNX Runtime does not have: the model itself decides, in runs.

    FASTEST compiles a session's model for each device and takes the one with the shortest runs.
    """

    FASTEST = 100


POLICY_NAMES = (*(p.name for p in OrtExecutionProviderDevicePolicy), MeasuredPolicy.FASTEST.name)
"""Of all policies."""


def find_policy(name: str) -> OrtExecutionProviderDevicePolicy | MeasuredPolicy:
    """The policy of a name in POLICY_NAMES.

    Raises:
        KeyError: There is none.
    """
    if name in MeasuredPolicy.__members__:
        return MeasuredPolicy[name]
    return OrtExecutionProviderDevicePolicy[name]


_FIRST = {
    OrtExecutionProviderDevicePolicy.PREFER_NPU: NPU,
    OrtExecutionProviderDevicePolicy.PREFER_GPU: GPU,
    OrtExecutionProviderDevicePolicy.MAX_PERFORMANCE: GPU,
    OrtExecutionProviderDevicePolicy.MAX_EFFICIENCY: NPU,
    OrtExecutionProviderDevicePolicy.MIN_OVERALL_POWER: NPU,
}


def select_providers(
    policy: OrtExecutionProviderDevicePolicy | MeasuredPolicy | None,
    delegate: Delegate | None,
    metadata: Callable[[], ModelMetadata],
) -> list[tuple[str, Mapping[str, str]]]:
    """The providers, with options, that a policy or a delegate selects on this machine.

    Several devices of one execution provider are one provider, on the first of them. The
    default EP is left out: a session appends it, or forbids it, anyway.

    Args:
        policy: Selects where `delegate` is None.
        delegate: The user's function.
        metadata: Reads the model's metadata, for a delegate.

    Raises:
        Fail: The delegate failed, or selected nothing, too much or what it was not offered;
            ONNX Runtime's texts.
    """
    devices = sorted(get_ep_devices(), key=_rank)
    if delegate is not None:
        chosen = _choose_by_delegate(delegate, devices, metadata())
    else:
        chosen = _choose_by_policy(devices, policy)
    first_devices: dict[str, OrtEpDevice] = {}
    for device in chosen:
        first_devices.setdefault(device.ep_name, device)
    first_devices.pop(DEFAULT_PROVIDER, None)
    return [(name, device.ep_options) for name, device in first_devices.items()]


def _rank(device: OrtEpDevice) -> tuple[int, bool, bool]:
    """NPU, GPU, CPU; discrete GPUs before others; the default EP last."""
    hardware = device.device
    return (
        (NPU, GPU, CPU).index(hardware.type),
        hardware.metadata.get("Discrete") != "1",
        device.ep_name == DEFAULT_PROVIDER,
    )


def _choose_by_policy(
    devices: Sequence[OrtEpDevice], policy: OrtExecutionProviderDevicePolicy | MeasuredPolicy | None
) -> list[OrtEpDevice]:
    special = _FIRST.get(policy) if isinstance(policy, OrtExecutionProviderDevicePolicy) else None
    kinds = [special, CPU] if special is not None else [CPU]
    firsts = [next((d for d in devices if d.device.type is kind), None) for kind in kinds]
    return [device for device in firsts if device is not None]


def _choose_by_delegate(
    delegate: Delegate, devices: Sequence[OrtEpDevice], metadata: ModelMetadata
) -> list[OrtEpDevice]:
    model_info = {
        "producer_name": metadata.producer_name,
        "producer_version": metadata.producer_version,
        "domain": metadata.domain,
        "model_version": str(metadata.version),
        "doc_string": metadata.description,
        "graph_name": metadata.graph_name,
        "graph_description": metadata.graph_description,
        **metadata.custom_metadata_map,
    }
    try:
        chosen = list(delegate(tuple(devices), model_info, {}, MAX_SELECTED))
    except Exception as exc:
        raise Fail(f"EP selection delegate failed: {type(exc).__name__}: {exc}") from exc
    if not chosen:
        raise Fail("EP selection delegate did not select anything.")
    if len(chosen) > MAX_SELECTED:
        raise Fail(
            f"EP selection delegate selected too many EP devices ({len(chosen)}). "
            f"The limit is {MAX_SELECTED} EP devices."
        )
    foreign = [device for device in chosen if device not in devices]
    if foreign:
        raise Fail(
            f"EP selection delegate selected devices that it was not offered: {foreign[0]!r}"
        )
    return chosen
