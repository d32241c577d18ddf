"""Sessions in a context or on a command queue that the program made itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.cl.foreign import (
    context_of_queue,
    device_of_queue,
    devices_of_context,
    is_in_order,
    keep_queue,
)
from eps.opencl.runtime.device import open_context
from eps.opencl.runtime.device_access import DeviceAccess
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.ep import EPFail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.options import OpenCLOptions
    from eps.opencl.runtime.device import ListedDevice


def devices_of_user(
    devices: Sequence[ListedDevice], options: OpenCLOptions
) -> Sequence[ListedDevice]:
    """Those of the devices that the user's context or queue is of.

    Raises:
        EPFail: It is of none that OpenCL lists, a part of one for example.
        InvalidArgument: The queue may run commands in another order than they are enqueued.
    """
    with opencl_errors("reading the context of provider option context or command_queue"):
        if options.command_queue:
            handles: Sequence[int] = [device_of_queue(options.command_queue)]
            if not is_in_order(options.command_queue):
                raise InvalidArgument(
                    "the command_queue runs commands out of order, and kernels of a model read "
                    "what earlier ones wrote; pass a queue without OUT_OF_ORDER_EXEC_MODE_ENABLE"
                )
        else:
            handles = devices_of_context(options.context)
    mine = [listed for listed in devices if listed.device.handle in handles]
    if not mine:
        there = "; ".join(listed.label for listed in devices) or "none"
        raise EPFail(
            "the context has no whole device that OpenCL lists (devices made by "
            f"create_sub_devices are not supported); there are: {there}"
        )
    return mine


def open_for_user(listed: ListedDevice, options: OpenCLOptions) -> DeviceAccess:
    """A device in the context or queue of the user's.

    Raises:
        EPFail: The driver does not know it.
    """
    with opencl_errors("keeping the context of the user's"):
        if options.command_queue:
            queue = keep_queue(options.command_queue)
            context = open_context(context_of_queue(options.command_queue), listed)
            return DeviceAccess(listed, context, queue)
        return DeviceAccess(listed, open_context(options.context, listed))
