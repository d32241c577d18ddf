"""Kinds of failures of an NPU or GPU during an inference, by the codes in OpenVINO's text.

Codes of Level Zero: https://oneapi-src.github.io/level-zero-spec/level-zero/latest/core/api.html,
ze_result_t. Their form in OpenVINO's text: https://github.com/openvinotoolkit/openvino/issues/31439.
"""

from __future__ import annotations

from time import sleep

from ort_lite.ep import DeviceReset, EPFail, get_logger

log = get_logger(__name__)

LOSSES = (
    "ZE_RESULT_ERROR_DEVICE_LOST",
    "ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET",
    "CL_DEVICE_NOT_AVAILABLE",
)
"""The device hung, was reset or removed, or its driver was updated."""
BUSY = (
    "ZE_RESULT_NOT_READY",
    "ZE_RESULT_ERROR_NOT_AVAILABLE",
    "ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE",
    "ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE",
    "Infer Request is busy",
)
"""Another program uses the device, or it is asleep: the next attempt may succeed."""
PAUSES = (0.02, 0.1)
"""Seconds before each further attempt at an inference that found the device busy."""
REMEDY = (
    "The device is lost to this session; a new session opens it again if it is back "
    "(ort-lite doctor)"
)


def is_busy(text: str) -> bool:
    """Whether OpenVINO's text is of a device that another attempt may find ready."""
    return any(code in text for code in BUSY)


def is_device_fault(text: str) -> bool:
    """Whether OpenVINO's text is of a device that is lost or busy, not of a model."""
    return any(code in text for code in (*LOSSES, *BUSY))


def wait(name: str, text: str, seconds: float) -> None:
    """Pause before another attempt at the inference of a partition, and log why."""
    log.info("%s: the device is busy, trying again in %g s: %s", name, seconds, text)
    sleep(seconds)


def run_error(name: str, text: str, attempts: int) -> EPFail:
    """The error of a run that failed: a DeviceReset for a device that is lost.

    Args:
        name: Of the partition.
        text: OpenVINO's.
        attempts: How often the inference was tried.
    """
    count = f" ({attempts} attempts)" if attempts > 1 else ""
    message = f"OpenVINO failed while running {name}{count}: {text}"
    if any(code in text for code in LOSSES):
        return DeviceReset(f"{message}. {REMEDY}")
    return EPFail(message)
