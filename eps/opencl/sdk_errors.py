"""OpenCL's errors as ort_lite's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.constants import CL_DEVICE_NOT_AVAILABLE
from ort_lite.ep import DeviceReset, EPFail

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def opencl_errors(doing: str) -> Iterator[None]:
    """Raise EPFail, or DeviceReset for a lost device, for what OpenCL raises while `doing`."""
    try:
        yield
    except OpenCLError as exc:
        text = sdk_text(exc)
        if exc.status == CL_DEVICE_NOT_AVAILABLE:
            raise DeviceReset(f"the OpenCL device failed while {doing}: {text}") from exc
        raise EPFail(f"OpenCL failed while {doing}: {text}") from exc


def sdk_text(exc: BaseException) -> str:
    """The message on one line; a build log is cut to its beginning."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return " | ".join(lines)[:1000] or type(exc).__name__
