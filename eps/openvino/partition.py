"""A partition that OpenVINO compiled or imported, run through pooled requests."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.ep import CompiledPartition, EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.openvino.sdk.runtime import Array, RuntimeModel
    from ort_lite.ep import Graph, Value

SHARED_FROM = 1 << 20
"""Inputs of this many bytes are lent to OpenVINO; copying smaller ones is cheaper than making
a tensor for them (8 us against 25 us for 150 KB)."""

INT32_MAX = (1 << 31) - 1

UNPROVEN_ON_NPU = (
    "its numbers are unproven: which operators OpenVINO computes correctly was recorded on CPU"
)


class OpenVINOPartition(CompiledPartition):
    """One compiled model; as many requests as threads run it at once, each kept for reuse."""

    def __init__(
        self,
        model: RuntimeModel,
        name: str,
        order: tuple[Sequence[int], Sequence[int]],
        source: Graph | None = None,
        rewritings: tuple[str, ...] = (),
    ) -> None:
        """Make the first request.

        Args:
            model: Compiled or imported.
            name: For messages.
            order: Port index of each input and of each output, in the partition's order.
            source: What was compiled, where it was compiled here.
            rewritings: Notes about operators that were written out for OpenVINO.
        """
        self._rewritings = rewritings
        self.source = source
        self.model: RuntimeModel | None = model
        self.name = name
        self._last_retry = ""
        self._in_order, self._out_order = tuple(order[0]), tuple(order[1])
        self._idle: deque[_PartitionRequest] = deque()
        self._idle.append(self._request())

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; where the device is busy, in a few attempts.

        Raises:
            DeviceReset: The device is lost; with OpenVINO's text.
            EPFail: The inference failed otherwise.
        """
        try:
            return self._run_once(inputs)
        except SDK_ERRORS as exc:
            return self._run_again(inputs, exc)

    def _run_once(self, inputs: Sequence[Value]) -> Sequence[Value]:
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._request()
        try:
            outputs = request.run(inputs)
        except EPFail:  # an input was refused before the inference
            self._idle.append(request)
            raise
        # A request that failed may still be at work, and is not used again.
        self._idle.append(request)
        return outputs

    def _run_again(self, inputs: Sequence[Value], error: Exception) -> Sequence[Value]:
        """Further attempts at an inference that failed with `error`."""
        from eps.openvino import device_faults  # noqa: PLC0415 - lazy: rare

        attempts = 1
        for pause in device_faults.PAUSES:
            text = sdk_text(error)
            if not device_faults.is_busy(text):
                break
            self._last_retry = f"the device was busy, and a run was tried again: {text}"
            device_faults.wait(self.name, text, pause)
            attempts += 1
            try:
                return self._run_once(inputs)
            except SDK_ERRORS as exc:
                error = exc
        raise device_faults.run_error(self.name, sdk_text(error), attempts) from error

    @property
    def notes(self) -> tuple[str, ...]:
        """The devices that it runs on, which AUTO and HETERO choose themselves; its rewritings."""
        if self.model is None:
            return ()
        retry = (*self._rewritings, *((self._last_retry,) if self._last_retry else ()))
        try:
            devices = str(self.model.property("EXECUTION_DEVICES"))
        except SDK_ERRORS:  # a device without that property
            return retry
        unproven = (UNPROVEN_ON_NPU,) if "NPU" in devices else ()
        return (f"on {devices}", *unproven, *retry)

    def forget_source(self) -> None:
        """Let go of the graph that was compiled, and with it of its weights."""
        self.source = None

    def release(self) -> None:
        """Requests first, then the model, and with it the bytes that they read."""
        self._idle.clear()
        self.model = None
        self.source = None

    def _request(self) -> _PartitionRequest:
        if self.model is None:
            raise EPFail(f"{self.name} is run after it was released")
        return _PartitionRequest(self.model, self._in_order, self._out_order)


class _PartitionRequest:
    """One infer request, which takes and gives values in the partition's order."""

    def __init__(
        self, model: RuntimeModel, in_order: Sequence[int], out_order: Sequence[int]
    ) -> None:
        self._request = model.request()
        self._in_order = tuple(in_order)
        self._out_order = tuple(out_order)
        ports = [model.inputs.all[index] for index in in_order]
        self._wide = tuple(i for i, port in enumerate(ports) if port.data_type == DataType.INT64)
        self._owned: list[Array | None] = [
            self._request.input_view(index, port) if port.is_static else None
            for index, port in zip(in_order, ports, strict=True)
        ]

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        for i in self._wide:
            _require_32_bits(inputs[i])
        lent = []
        for i, value in enumerate(inputs):
            owned = self._owned[i]
            if owned is not None and value.nbytes < SHARED_FROM:
                _require_shape(value.shape, owned.shape)
                owned[...] = value
            else:
                self._owned[i] = None
                lent.append(self._request.set_input_zero_copy(self._in_order[i], value))
        outputs = self._request.infer()
        return [outputs[index] for index in self._out_order]


def _require_shape(shape: tuple[int, ...], compiled: tuple[int, ...]) -> None:
    """Numpy would repeat a smaller value, or raise an error of its own.

    Raises:
        EPFail: The shapes differ in more than ones in front.
    """
    if shape != compiled and _without_ones(shape) != _without_ones(compiled):
        raise EPFail(f"an input has shape {list(shape)}, and was compiled as {list(compiled)}")


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    start = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return shape[start:]


def _require_32_bits(value: Array) -> None:
    """OpenVINO's CPU plug-in holds int64 in int32 and would go on with other numbers.

    Raises:
        EPFail: A value does not fit.
    """
    if value.size and (value.max() > INT32_MAX or value.min() < -INT32_MAX - 1):
        raise EPFail(
            f"an int64 input contains {value.max()} or {value.min()}, and OpenVINO computes int64 "
            "in 32 bits; run this model with providers=['CPUExecutionProvider']"
        )
