"""A tensor copied to where it belongs, in host memory or on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ort_lite.ep.device_tensors import DeviceTensor
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from ort_lite.ep.device_tensors import Place
    from ort_lite.ep.interface import Value


def fill_place(place: Place, value: Value, what: str) -> None:
    """Copy a tensor to where it belongs, on the device if both are there.

    Args:
        place: An array or a DeviceTensor.
        value: An array or a DeviceTensor of the same type and shape.
        what: Name of the value, for messages.

    Raises:
        InvalidArgument: They differ in type or shape.
    """
    if not isinstance(value, np.ndarray | DeviceTensor):
        raise InvalidArgument(f"{what} is a {type(value).__name__}, and a tensor is bound to it")
    if (tuple(place.shape), place.dtype) != (tuple(value.shape), value.dtype):
        raise InvalidArgument(
            f"{what} is {value.dtype}{list(value.shape)}, the memory bound to it is "
            f"{place.dtype}{list(place.shape)}"
        )
    if isinstance(place, DeviceTensor):
        if isinstance(value, DeviceTensor) and place.memory.reaches(value.memory):
            place.copy_from(value)
        else:
            array = value if isinstance(value, np.ndarray) else value.numpy()
            place.write(np.ascontiguousarray(array))
    else:
        np.copyto(place, value if isinstance(value, np.ndarray) else value.numpy())
