"""The devices that OpenCL lists, and the one that a session opens."""

from __future__ import annotations

from _weakref import ref
from threading import Lock
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.constants import CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU
from eps.opencl.cl.devices import platforms
from eps.opencl.cl.loader import loader_note
from eps.opencl.cl.objects import Context
from eps.opencl.sdk_errors import opencl_errors, sdk_text
from ort_lite.ep import EPFail, NotInstalled, get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.devices import Device, Platform
    from eps.opencl.options import OpenCLOptions

log = get_logger(__name__)

HALF = "cl_khr_fp16"
_contexts: dict[int, ref[Context]] = {}
_opening = Lock()
KINDS = {"cpu": "CPU", "gpu": "GPU", "accelerator": "ACCELERATOR"}
POCL = "Portable Computing Language"


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A device and its place in the list: `name` is "platform index.device index"."""

    name: str
    platform: Platform
    device: Device

    @property
    def kind(self) -> str:
        """CPU, GPU or ACCELERATOR."""
        if self.device.type & CL_DEVICE_TYPE_GPU:
            return "GPU"
        return "CPU" if self.device.type & CL_DEVICE_TYPE_CPU else "ACCELERATOR"

    @property
    def label(self) -> str:
        """Device and platform for a person."""
        return f"{self.device.name} ({self.platform.name})"


def find_devices() -> tuple[ListedDevice, ...]:
    """Every device of every platform.

    Raises:
        NotInstalled: There is no loader, or it finds no platform.
        EPFail: The loader cannot be loaded.
    """
    try:
        drivers = platforms()
    except OpenCLError as exc:
        raise NotInstalled(f"no OpenCL platform: {sdk_text(exc)}; {loader_note()}") from exc
    listed = []
    for p, platform in enumerate(drivers):
        try:
            devices = platform.devices()
        except OpenCLError as exc:
            log.warning("%s lists no devices: %s", platform.name, sdk_text(exc))
            continue
        listed += [ListedDevice(f"{p}.{d}", platform, device) for d, device in enumerate(devices)]
    return tuple(listed)


def fitting_devices(
    devices: Sequence[ListedDevice], options: OpenCLOptions
) -> Sequence[ListedDevice]:
    """The devices that fit, best first: GPUs before others, PoCL last.

    Raises:
        EPFail: None fits; says which there are.
    """
    fitting = [f for f in devices if _fits_platform(f, options) and _fits_device(f, options)]
    if not fitting:
        place = f"device '{options.device}'" if options.device else "device"
        place += f" on platform '{options.platform}'" if options.platform else ""
        present = "; ".join(f"{f.name}: {f.kind} {f.label}" for f in devices) or "none"
        raise EPFail(
            f"OpenCL has no {place} on this machine; found: {present} ({loader_note()}). "
            "Run ort-lite doctor to see what is missing."
        )
    return sorted(_select_precision(fitting, devices, options), key=_preference)


def _select_precision(
    fitting: Sequence[ListedDevice], devices: Sequence[ListedDevice], options: OpenCLOptions
) -> Sequence[ListedDevice]:
    """Those of the devices that have the precision.

    Raises:
        EPFail: None has; says which of all devices do.
    """
    if options.precision != "fp16":
        return fitting
    able = [f for f in fitting if HALF in f.device.extensions.split()]
    if not able:
        without = "; ".join(f"{f.name}: {f.label}" for f in fitting)
        having = "; ".join(f"{f.name}: {f.label}" for f in devices if HALF in f.device.extensions)
        raise EPFail(
            f"precision=fp16 needs a device with {HALF}, which {without} lacks; "
            f"with it there are: {having or 'none'}"
        )
    return able


def _fits_platform(listed: ListedDevice, options: OpenCLOptions) -> bool:
    platform = options.platform
    if platform.isdigit():
        return listed.name.split(".")[0] == platform
    return platform in listed.platform.name.lower()


def _fits_device(listed: ListedDevice, options: OpenCLOptions) -> bool:
    device = options.device
    if device in KINDS:
        return listed.kind == KINDS[device]
    if device.isdigit():
        return listed.name.split(".")[1] == device
    return device == listed.name or device in listed.device.name.lower()


def _preference(listed: ListedDevice) -> tuple[int, bool]:
    return ("GPU", "ACCELERATOR", "CPU").index(listed.kind), listed.platform.name == POCL


def share_context(listed: ListedDevice) -> Context:
    """The context of a device in this process, as long as something uses it.

    Memory belongs to a context: with one for each session, no tensor could go from one session
    to another.

    Raises:
        EPFail: The driver does not open the device.
    """
    device = listed.device
    with _opening, opencl_errors("opening the device"):
        known = _contexts.get(device.handle)
        context = known() if known is not None else None
        if context is None:
            context = Context(device)
            _contexts[device.handle] = ref(context)
        return context


def open_context(handle: int, listed: ListedDevice) -> Context:
    """A context by its handle: that of the process, or one that the program made itself.

    The memory of a context is counted by one object for all its users.

    Raises:
        OpenCLError: The driver does not know the handle.
    """
    with _opening:
        known = _contexts.get(listed.device.handle)
        context = known() if known is not None else None
        if context is not None and context.handle == handle:
            return context
    from eps.opencl.cl.foreign import keep_context  # noqa: PLC0415 - lazy: rare

    return keep_context(handle, listed.device)
