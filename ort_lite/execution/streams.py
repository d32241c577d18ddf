"""Streams of devices, and copies of tensors, as onnxruntime's binding has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Self

from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.execution.values import OrtValue


class OrtSyncStream:
    """A queue of a device; no execution provider here lends its own to a program."""

    def __new__(cls) -> Self:
        """Not to be made; `OrtEpDevice.create_sync_stream` says why there is none.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{cls.__name__}: No constructor defined!")

    def get_handle(self) -> NoReturn:
        """The address of the queue, of which there is none.

        Raises:
            BindingError: Always.
        """
        raise BindingError("no stream was made")


def copy_tensors(
    src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: OrtSyncStream | None = None
) -> None:
    """Copy each tensor of `src` into the memory of the one at its place in `dst`.

    onnxruntime copies between devices alone; all tensors here are in host memory.

    Args:
        src: Tensors.
        dst: As many, of the same types and shapes.
        stream: Ordering of device work, of which there is none here.

    Raises:
        BindingError: The numbers, a type or a shape differ; a RuntimeError, too.
        TypeError: `stream` is something else.
    """
    given: object = stream
    if given is not None and not isinstance(given, OrtSyncStream):
        raise TypeError(f"a stream is an OrtSyncStream, got {given!r}")
    if len(src) != len(dst):
        raise BindingError(
            f"Invalid arguments provided to CopyTensors: {len(src)} sources, "
            f"{len(dst)} destinations"
        )
    for source, destination in zip(src, dst, strict=True):
        destination.update_inplace(source)
