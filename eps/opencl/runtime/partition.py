"""A compiled partition whose inputs have fixed shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.ep import CompiledPartition, EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.runtime.executable import Executable
    from ort_lite.ep import Value


class StaticPartition(CompiledPartition):
    """One program; threads take turns."""

    def __init__(
        self,
        executable: Executable,
        name: str,
        orders: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        """Take over the executable.

        Args:
            executable: What runs.
            name: For messages.
            orders: Port of each input and of each output, where they are not in order.
        """
        self.executable = executable
        self.name = name
        ports = executable.spec.inputs, executable.spec.outputs
        ins, outs = orders or (range(len(ports[0])), range(len(ports[1])))
        self._taken = [list(ins).index(i) for i in range(len(ports[0]))]
        self._output_order = tuple(outs)

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, in the order of the node."""
        values = [inputs[i] for i in self._taken]
        for port, value in zip(self.executable.spec.inputs, values, strict=True):
            if tuple(value.shape) != port.shape or value.dtype.name != port.dtype:
                raise EPFail(
                    f"{self.name}: '{port.name}' is {value.dtype}{list(value.shape)}, compiled "
                    f"for {port.dtype}{list(port.shape)}"
                )
        results = self.executable.run(values)
        return [results[i] for i in self._output_order]

    @property
    def notes(self) -> tuple[str, ...]:
        """How some operations are computed."""
        return self.executable.spec.notes

    def forget_source(self) -> None:
        """Let go of the weights that the device has copies of."""
        self.executable.forget_weights()

    def release(self) -> None:
        """Give device memory back."""
        self.executable.release()
