"""A compiled partition whose inputs have fixed shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.execution_provider import CompiledPartition
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.runtime import Executable
    from ort_lite.execution_provider import Value


class StaticPartition(CompiledPartition):
    """One program; threads take turns."""

    def __init__(self, executable: Executable, name: str) -> None:
        """`name` is for messages."""
        self.executable = executable
        self.name = name

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs."""
        for port, value in zip(self.executable.blueprint.inputs, inputs, strict=True):
            if tuple(value.shape) != port.shape or value.dtype.name != port.dtype:
                raise EPFail(
                    f"{self.name}: '{port.name}' is {value.dtype}{list(value.shape)}, compiled "
                    f"for {port.dtype}{list(port.shape)}"
                )
        return self.executable.run(inputs)

    def release(self) -> None:
        """Give device memory back."""
        self.executable.release()
