"""A session's profile: events in Chrome's trace form, as ONNX Runtime writes them."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_formats.atomic_write import create_sibling_file, publish
from ort_lite.model.tensor_values import onnx_data_type
from ort_lite.model.type_text import element_text
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ort_lite.ep.interface import Value
    from ort_lite.execution.run_context import NodeRun

MAX_EVENTS = 1_000_000
"""ONNX Runtime stops there too (profiler.h); a session left alone must not eat all memory."""


class Profiler:
    """Collects events until `end`; many threads may add them."""

    def __init__(self, prefix: str) -> None:
        """Start the clock.

        Args:
            prefix: Beginning of the file's path; date and time are added.

        Raises:
            Fail: The folder is not there, or not to be written to.
        """
        self.start_time_ns = time.time_ns()
        self._zero = time.perf_counter_ns()
        moment = datetime.fromtimestamp(self.start_time_ns / 1e9).astimezone()
        millis = self.start_time_ns // 1_000_000 % 1000
        self._path = Path(f"{prefix}_{moment:%Y-%m-%d_%H-%M-%S}_{millis:03}.json")
        if not os.access(self._path.parent, os.W_OK):
            raise Fail(f"the profile {self._path} cannot be written: no folder to write to")
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def now(self) -> int:
        """Nanoseconds since the start."""
        return time.perf_counter_ns() - self._zero

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """An event of the session around what is inside."""
        start = self.now()
        try:
            yield
        finally:
            self._add("Session", name, start, {})

    def node(self, run: NodeRun) -> None:
        """A node that has just ended."""
        label = run.label
        read = sum(_bytes(value) for value in run.inputs)
        self._add(
            "Node",
            f"{label.name}_kernel_time",
            run.start,
            {
                "op_name": label.op_type,
                "provider": label.provider,
                "node_index": str(run.index),
                "parameter_size": str(label.parameters),
                "activation_size": str(read - label.parameters),
                "output_size": str(sum(_bytes(value) for value in run.outputs)),
                "input_type_shape": _types_and_shapes(run.inputs),
                "output_type_shape": _types_and_shapes(run.outputs),
                **_device_copies(run),
            },
        )

    def end(self) -> str:
        """Write the file and give its path; events after this are lost.

        Raises:
            Fail: It cannot be written.
        """
        with self._lock:
            events, self._events = self._events, []
        text = ",\n".join(json.dumps(event) for event in events)
        try:
            with create_sibling_file(self._path) as (file, temporary):
                file.write(f"[\n{text}\n]\n".encode())
            publish(temporary, self._path, replace=True)
        except OSError as exc:
            raise Fail(f"the profile {self._path} cannot be written: {exc}") from exc
        return str(self._path)

    def _add(self, category: str, name: str, start: int, args: dict[str, Any]) -> None:
        event = {
            "cat": category,
            "pid": os.getpid(),
            "tid": threading.get_native_id(),
            "dur": (self.now() - start) // 1000,
            "ts": start // 1000,
            "ph": "X",
            "name": name,
            "args": args,
        }
        with self._lock:
            if len(self._events) < MAX_EVENTS:
                self._events.append(event)


def _device_copies(run: NodeRun) -> dict[str, str]:
    """Copies of tensors to and from a device, where the node's EP has one."""
    before, after = run.copies
    if before is None or after is None:
        return {}
    return {
        "copies_to_device": str(after.to_device - before.to_device),
        "copies_to_host": str(after.to_host - before.to_host),
    }


def _bytes(value: Value) -> int:
    if isinstance(value, list):
        return sum(_bytes(item) for item in value)
    return int(getattr(value, "nbytes", 0))


def _types_and_shapes(values: Sequence[Value]) -> list[dict[str, list[int]]]:
    """Of the tensors among `values`: element type to dimensions."""
    return [
        {element_text(onnx_data_type(value.dtype)): list(value.shape)}
        for value in values
        if hasattr(value, "nbytes")
    ]
