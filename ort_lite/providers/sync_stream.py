"""OrtSyncStream: a queue of a device, for copies that do not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ort_lite.ep.device_streams import DeviceStream


class OrtSyncStream:
    """A queue of a device; `OrtEpDevice.create_sync_stream` makes it."""

    _stream: DeviceStream | None

    def __new__(cls) -> Self:
        """Refuse, as onnxruntime's class.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{cls.__name__}: No constructor defined!")

    @classmethod
    def over(cls, stream: DeviceStream | None) -> Self:
        """One over a device's stream; None where copies have been made when they return."""
        made = object.__new__(cls)
        made._stream = stream
        return made

    @property
    def device_stream(self) -> DeviceStream | None:
        """The device's stream; None where copies have been made when they return."""
        return self._stream

    def get_handle(self) -> int:
        """The SDK's handle: a cl_command_queue for OpenCL; 0 where the device has no queue."""
        return 0 if self._stream is None else self._stream.handle

    def synchronize(self) -> None:
        """Wait until all copies on the stream have been made; onnxruntime has no such method.

        Raises:
            EPFail: The device failed.
        """
        if self._stream is not None:
            self._stream.synchronize()
