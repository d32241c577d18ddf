"""A partition that OpenVINO compiled or imported, run through pooled requests."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.payload.blob_header import EMPTY, THREADS, write_positions
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.ep import (
    BindingError,
    CompiledPartition,
    DeviceReset,
    EPFail,
    OrtLiteError,
    get_logger,
    numpy_dtype,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from eps.openvino.bound_request import BoundRequest
    from eps.openvino.memory import OpenVINOMemory
    from eps.openvino.sdk.runtime import Array, RuntimeModel
    from ort_lite.ep import CopyCounts, DeviceMemory, Graph, MemoryUse, Place, Value

log = get_logger(__name__)

SHARED_FROM = 1 << 20
"""Inputs of this many bytes are lent to OpenVINO; copying smaller ones is cheaper than making
a tensor for them (8 us against 25 us for 150 KB)."""

WRITTEN_FROM = 1 << 20
"""Outputs of this many bytes OpenVINO writes to the caller's arrays; smaller ones are copied."""
WRITTEN_TYPES = (DataType.FLOAT, DataType.FLOAT16, DataType.INT32, DataType.INT64, DataType.UINT8)
INT32_MAX = (1 << 31) - 1

RUNS_BEFORE_IMPORT = 256
"""Runs through the extension after which a small model goes over to the C API."""

COUNTED = ("to_device", "to_host", "bytes_to_device", "bytes_to_host")
"""Fields of CopyCounts; a request counts for itself, since one thread at a time uses it."""

ON_ONE_THREAD = "on one thread: more would wait for each other"
UNPROVEN_ON_NPU = (
    "its numbers are unproven: which operators OpenVINO computes correctly was recorded on CPU"
)


class OpenVINOPartition(CompiledPartition):
    """One compiled model; as many requests as threads run it at once, each kept for reuse.

    Runs from and to bound memory have requests of their own.

    Attributes:
        one_thread: Whether it is compiled for the caller's thread, as nobody chose a number; its
            maker sets it.
        import_again: Gives the same model through the C API, or None; its maker sets it for a
            model that is small enough.
        empty_inputs: See CompiledPartition; its maker sets them.
    """

    def __init__(
        self,
        model: RuntimeModel,
        name: str,
        order: tuple[Sequence[int], Sequence[int]],
        source: Graph | None = None,
        rewritings: tuple[str, ...] = (),
        find_memory: Callable[[], OpenVINOMemory] | None = None,
    ) -> None:
        """Make the first request.

        Args:
            model: Compiled or imported.
            name: For messages.
            order: Port index of each input and of each output, in the partition's order.
            source: What was compiled, where it was compiled here.
            rewritings: Notes about operators that were written out for OpenVINO.
            find_memory: Opens the memory of the device; None for one that uses the host's.
        """
        self._rewritings = rewritings
        self.one_thread = False
        self.import_again: Callable[[RuntimeModel], RuntimeModel | None] | None = None
        self._runs_before_import = RUNS_BEFORE_IMPORT
        self._importing = Lock()
        self.source = source
        self.model: RuntimeModel | None = model
        self.name = name
        self._last_retry = ""
        self._in_order, self._out_order = tuple(order[0]), tuple(order[1])
        in_ports = [model.inputs.all[index] for index in self._in_order]
        self._wide = tuple(i for i, port in enumerate(in_ports) if port.data_type == DataType.INT64)
        self._find_memory = find_memory
        self.has_device_memory = find_memory is not None
        self._tallies: list[dict[str, int]] = []
        self._idle: deque[_PartitionRequest] = deque()
        self._idle_bound: defaultdict[tuple[bool, ...], deque[BoundRequest]] = defaultdict(deque)
        self._idle.append(self._request(model))

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; where the device is busy, in a few attempts.

        Raises:
            DeviceReset: The device is lost; with OpenVINO's text.
            EPFail: The inference failed otherwise.
        """
        try:
            return self._run_once(inputs)
        except SDK_ERRORS as exc:
            return self._run_again(partial(self._run_once, inputs), exc)

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
        """See SupportsBoundRuns: OpenVINO reads inputs and writes outputs where they are.

        Raises:
            DeviceReset: As `run`.
            EPFail: As `run`.
        """
        from eps.openvino.bound_request import find_destinations  # noqa: PLC0415 - lazy: rare

        model = self._require_model()
        inputs = self._shape_inputs(model, inputs)
        destinations = find_destinations(model, self._out_order, places, inputs)
        try:
            return self._run_to(inputs, destinations)
        except DeviceReset:
            raise
        except EPFail:
            # An output that the run gives another size than its place has none there; the core
            # says so where it is computed elsewhere.
            static = [model.outputs.all[index].is_static for index in self._out_order]
            own = [v if fixed else None for v, fixed in zip(destinations, static, strict=True)]
            if all(a is b for a, b in zip(own, destinations, strict=True)):
                raise
            return self._run_to(inputs, own)

    def _shape_inputs(self, model: RuntimeModel, inputs: Sequence[Value]) -> list[Value]:
        """Arrays in the shapes that the model was compiled for.

        Raises:
            EPFail: They differ in more than ones in front.
        """
        shaped = list(inputs)
        for i, index in enumerate(self._in_order):
            port, value = model.inputs.all[index], inputs[i]
            if port.is_static and value.shape != port.shape and hasattr(value, "reshape"):
                compiled = tuple(int(size or 0) for size in port.shape or ())
                _require_shape(value.shape, compiled)
                shaped[i] = value.reshape(compiled)
        return shaped

    def _run_to(self, inputs: Sequence[Value], destinations: Sequence[Value]) -> Sequence[Value]:
        run = partial(self._run_bound_once, inputs, destinations)
        try:
            return run()
        except BindingError:  # of a tensor that was released; a RuntimeError, too
            raise
        except SDK_ERRORS as exc:
            return self._run_again(run, exc)

    def _run_bound_once(
        self, inputs: Sequence[Value], destinations: Sequence[Value]
    ) -> Sequence[Value]:
        from eps.openvino.bound_request import BoundRequest  # noqa: PLC0415 - lazy: rare

        for i in self._wide:
            if hasattr(inputs[i], "max"):  # an array
                _require_32_bits(inputs[i])
        idle = self._idle_bound[tuple(value is None for value in destinations)]
        try:
            request = idle.pop()
        except IndexError:
            orders = self._in_order, self._out_order
            request = BoundRequest(self._require_model(), orders, self._new_tally())
        try:
            outputs = request.run(inputs, destinations)
        except (BindingError, EPFail):  # an input was refused before the inference
            idle.append(request)
            raise
        idle.append(request)
        if self.import_again is not None:
            self._count_run()
        return outputs

    def copy_counts(self) -> CopyCounts:
        """See SupportsBoundRuns."""
        from ort_lite.ep import CopyCounts  # noqa: PLC0415 - lazy: rare

        tallies = list(self._tallies)
        return CopyCounts(**{name: sum(tally[name] for tally in tallies) for name in COUNTED})

    @property
    def memory(self) -> DeviceMemory | None:
        """See SupportsBoundRuns."""
        return None if self._find_memory is None else self._find_memory()

    def memory_use(self) -> MemoryUse:
        """See SupportsMemoryReport: OpenVINO does not report what its plug-ins allocate."""
        from ort_lite.ep import MemoryUse  # noqa: PLC0415 - lazy: rare

        if self.model is None:
            return MemoryUse(weights=0, arena=0, peak=0)
        blob = self.model.blob_bytes
        note = "OpenVINO does not report the memory of its plug-ins"
        if blob is not None:
            note += f"; weights are the blob of {blob} bytes that it reads in place"
        return MemoryUse(weights=blob, arena=None, peak=None, note=note)

    def _new_tally(self) -> dict[str, int]:
        tally = dict.fromkeys(COUNTED, 0)
        self._tallies.append(tally)
        return tally

    def _run_once(self, inputs: Sequence[Value]) -> Sequence[Value]:
        for i in self._wide:
            _require_32_bits(inputs[i])
        idle = self._idle
        try:
            request = idle.pop()
        except IndexError:
            request = self._request(self._require_model())
        try:
            outputs = request.run(inputs)
        except EPFail:  # an input was refused before the inference
            idle.append(request)
            raise
        # A request that failed may still be at work, and is not used again.
        idle.append(request)
        if self.import_again is not None:
            self._count_run()
        return outputs

    def _count_run(self) -> None:
        """Go over to the C API after enough runs; runs that last meanwhile end as they began."""
        self._runs_before_import -= 1
        if self._runs_before_import > 0 or not self._importing.acquire(blocking=False):
            return
        import_again, self.import_again = self.import_again, None
        if import_again is None or self.model is None:
            return
        try:
            model = import_again(self.model)
            request = None if model is None else self._request(model)
        except (*SDK_ERRORS, OrtLiteError) as exc:
            log.info("%s stays with OpenVINO's extension: %s", self.name, exc)
            return
        if request is not None:
            self.model = model
            self._idle, self._idle_bound = deque([request]), defaultdict(deque)

    def _run_again(
        self, run_once: Callable[[], Sequence[Value]], error: Exception
    ) -> Sequence[Value]:
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
                return run_once()
            except BindingError:  # see _run_to
                raise
            except SDK_ERRORS as exc:
                error = exc
        raise device_faults.run_error(self.name, sdk_text(error), attempts) from error

    @property
    def notes(self) -> tuple[str, ...]:
        """The devices that it runs on, which AUTO and HETERO choose themselves; its rewritings."""
        if self.model is None:
            return ()
        threads = (ON_ONE_THREAD,) if self.one_thread else ()
        retry = (self._last_retry,) if self._last_retry else ()
        others = (*self._rewritings, *threads, *retry)
        try:
            devices = str(self.model.property("EXECUTION_DEVICES"))
        except SDK_ERRORS:  # a device without that property
            return others
        unproven = (UNPROVEN_ON_NPU,) if "NPU" in devices else ()
        return (f"on {devices}", *unproven, *others)

    @property
    def settings(self) -> Mapping[str, str]:
        """What an import has to know that a blob does not say."""
        threads = {THREADS: "1"} if self.one_thread else {}
        empty = {EMPTY: write_positions(self.empty_inputs)} if self.empty_inputs else {}
        return threads | empty

    def forget_source(self) -> None:
        """Let go of the graph that was compiled, and with it of its weights."""
        self.source = None

    def release(self) -> None:
        """Requests first, then the model, and with it the bytes that they read."""
        self._idle.clear()
        self._idle_bound.clear()
        self.model = None
        self.source = None

    def _require_model(self) -> RuntimeModel:
        """The model.

        Raises:
            EPFail: `release` was called.
        """
        if self.model is None:
            raise EPFail(f"{self.name} is run after it was released")
        return self.model

    def _request(self, model: RuntimeModel) -> _PartitionRequest:
        orders = self._in_order, self._out_order
        writes = not self.has_device_memory
        return _PartitionRequest(model, orders, self._new_tally(), writes=writes)


def memory_finder(core: object, device: str) -> Callable[[], OpenVINOMemory] | None:
    """Opens the memory of a GPU or NPU of `core`; None for other devices and groups of devices."""
    if not device.startswith(("GPU", "NPU")):
        return None

    def find() -> OpenVINOMemory:
        from eps.openvino.memory import memory_of  # noqa: PLC0415 - lazy: rare

        return memory_of(core, device)

    return find


class _PartitionRequest:
    """One infer request, which takes and gives values in the partition's order."""

    def __init__(
        self,
        model: RuntimeModel,
        orders: tuple[Sequence[int], Sequence[int]],
        tally: dict[str, int],
        *,
        writes: bool,
    ) -> None:
        self._request = model.request()
        self._in_order, self._out_order = orders
        self._tally = tally
        ports = [model.inputs.all[index] for index in self._in_order]
        self._is_static = tuple(port.is_static for port in ports)
        self._owned: list[Array | None] = [
            self._request.input_view(index, port) if port.is_static else None
            for index, port in zip(self._in_order, ports, strict=True)
        ]
        self._shapes: list[tuple[int, ...] | None] = [None] * len(ports)
        self._written = dict(_large_outputs(model, self._out_order)) if writes else {}

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        owned, lent, moved = self._owned, [], 0
        for i, value in enumerate(inputs):
            own, size = owned[i], value.nbytes
            if size >= SHARED_FROM:
                own = owned[i] = None
            elif own is None or (own.shape != value.shape and not self._is_static[i]):
                own = owned[i] = self._settle(i, value)
            if own is None:
                lent.append(self._request.set_input_zero_copy(self._in_order[i], value))
                continue
            if value.shape != own.shape:
                _require_shape(value.shape, own.shape)
            own[...] = value
            moved += size
        tally = self._tally
        tally["to_device"] += len(inputs) - len(lent)
        tally["bytes_to_device"] += moved
        if self._written:
            return self._infer_to_arrays()
        outputs = self._request.infer()
        tally["to_host"] += len(outputs)
        for array in outputs:
            tally["bytes_to_host"] += array.nbytes
        return [outputs[index] for index in self._out_order]

    def _infer_to_arrays(self) -> list[Value]:
        """The outputs; large ones in new arrays that OpenVINO writes to."""
        request, tally, outputs = self._request, self._tally, {}
        for index, (shape, dtype) in self._written.items():
            array = outputs[index] = np.empty(shape, dtype)
            request.set_output_zero_copy(index, array)
        request.compute()
        for index in self._out_order:
            if index not in outputs:
                array = outputs[index] = request.read_output(index)
                tally["to_host"] += 1
                tally["bytes_to_host"] += array.nbytes
        return [outputs[index] for index in self._out_order]

    def _settle(self, i: int, value: Value) -> Array | None:
        """Memory for an input of a free shape that was that of `value` in the last run, too.

        None if it was another one. For a new tensor OpenVINO goes over its free shapes again, so
        that copying a small one is faster.
        """
        if self._shapes[i] != value.shape:
            self._shapes[i] = value.shape
            return None
        own: Array = value.copy()
        self._request.set_input_zero_copy(self._in_order[i], own)
        return own


def _large_outputs(model: RuntimeModel, order: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Port index, shape and numpy type of outputs that arrays are made for before a run."""
    for index in order:
        port = model.outputs.all[index]
        if not port.is_static or port.data_type not in WRITTEN_TYPES:
            continue
        dtype = numpy_dtype(port.data_type)
        shape = tuple(int(size or 0) for size in port.shape or ())
        if prod(shape) * dtype.itemsize >= WRITTEN_FROM:
            yield index, (shape, dtype)


def _require_shape(shape: tuple[int, ...], compiled: tuple[int, ...]) -> None:
    """Numpy would repeat a smaller value, or raise an error of its own.

    Raises:
        EPFail: The shapes differ in more than ones in front.
    """
    if _without_ones(shape) != _without_ones(compiled):
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
