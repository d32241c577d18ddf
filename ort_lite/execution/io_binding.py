"""IOBinding: inputs and outputs bound to memory before a run, with onnxruntime's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.ep.device_tensors import DeviceMemory, DeviceTensor
from ort_lite.execution.device_values import find_memory
from ort_lite.execution.feeds import BoundFeed
from ort_lite.execution.value_vector import OrtValueVector
from ort_lite.execution.values import (
    NO_STRINGS,
    OrtValue,
    array_at,
    require_bindable,
)
from ort_lite.providers.memory_info import OrtDevice, read_device, require_host
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from ort_lite.ep.device_tensors import Place
    from ort_lite.ep.interface import Value
    from ort_lite.model.info import NodeArg

    Array = np.ndarray[Any, np.dtype[Any]]

    class DescribesPorts(Protocol):
        """A session, as far as its bindings need it."""

        def get_inputs(self) -> list[NodeArg]:
            """Inputs that a run needs."""
            ...

        def get_overridable_initializers(self) -> list[NodeArg]:
            """Initializers that a run may override."""
            ...

        def get_outputs(self) -> list[NodeArg]:
            """Outputs, in order."""
            ...

        def device_memories(self) -> list[DeviceMemory]:
            """Memory of its devices."""
            ...


class IOBinding:
    """Inputs and outputs of one session; made by `session.io_binding()`.

    What is bound stays where it is: a run that reads and writes tensors on the device of its
    execution provider copies none of them to the host. An OrtValue may be bound to an input and an
    output at once. Not to be used by two threads at once.
    """

    def __init__(self, session: DescribesPorts) -> None:
        """A binding without inputs and outputs, for runs of `session` only."""
        self._session = session
        overridable = [arg.name for arg in session.get_overridable_initializers()]
        self._types = dict.fromkeys(overridable, "")
        self._types |= {arg.name: arg.type for arg in session.get_inputs()}
        self._known_outputs = frozenset(arg.name for arg in session.get_outputs())
        self._inputs = BoundFeed()
        self._outputs: dict[str, Place] = {}
        self._at_places: list[OrtValue | None] | None = None
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Feed an array, without a copy.

        Raises:
            BindingError: It is not an array, or text; an InvalidArgument and a RuntimeError, too.
        """
        self._require_known(name, inputs=True)
        self._require_no_text(name)
        if not isinstance(arr_on_cpu, np.ndarray):
            raise BindingError(f"{NO_STRINGS}, got {type(arr_on_cpu).__name__}")
        require_bindable(arr_on_cpu.dtype)
        self._inputs.bind(name, arr_on_cpu)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Feed what an OrtValue holds when the session is run.

        Raises:
            TypeError: It is not an OrtValue.
        """
        _require_ortvalue(ortvalue)
        self._inputs.bind(self._require_known(name, inputs=True), ortvalue.held_value())

    def bind_input(
        self,
        name: str,
        device_type: str | OrtDevice,
        device_id: int,
        element_type: Any,  # noqa: ANN401 - a numpy type or an ONNX number, as in onnxruntime
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Feed memory that the caller owns and keeps alive.

        Raises:
            BindingError: A device other than the host, an unknown input, or text.
        """
        require_host(read_device(device_type, device_id), "an address is one")
        self._require_no_text(name)
        array = array_at(buffer_ptr, element_type, shape)
        self._inputs.bind(self._require_known(name, inputs=True), array)

    def bind_output(
        self,
        name: str,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        element_type: Any = None,  # noqa: ANN401 - a numpy type or an ONNX number
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output, in new memory of a device or at `buffer_ptr`, which the caller owns.

        Raises:
            BindingError: An unknown device, an unknown output, text, or an address that is
                not the host's.
            ValueError: A pointer without type or shape, as in onnxruntime.
            EPFail: The device cannot be opened.
        """
        place: Place = None
        if buffer_ptr is None:
            known = self._session.device_memories()
            place = find_memory(device_type, device_id, known=known)
        else:
            require_host(read_device(device_type, device_id), "an address is one")
            if element_type is None or shape is None:
                raise ValueError(
                    "`element_type` and `shape` are to be provided if pre-allocated memory is "
                    "provided"
                )
            place = array_at(buffer_ptr, element_type, shape)
        self._bind_place(name, place)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Ask for an output in the memory of an OrtValue.

        Raises:
            TypeError: It is not an OrtValue.
            BindingError: It is not a tensor.
        """
        _require_ortvalue(ortvalue)
        place = ortvalue.held_value()
        if not isinstance(place, DeviceTensor):
            place = ortvalue.numpy()
        self._bind_place(name, place)

    def _bind_place(self, name: str, place: Place) -> None:
        self._outputs[self._require_known(name, inputs=False)] = place
        self._at_places = None

    def get_outputs(self) -> list[OrtValue]:
        """Results of the last run, in the order in which outputs were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """As `get_outputs`, in the form of onnxruntime's binding."""
        return OrtValueVector.of(self._results)

    def copy_outputs_to_cpu(self) -> list[Value]:
        """Results of the last run as arrays of the caller's own."""
        return [
            value.held_value().copy()
            if type(value.held_value()) is np.ndarray
            else value.numpy()
            if value.is_tensor()
            else value.held_value()
            for value in self._results
        ]

    def clear_binding_inputs(self) -> None:
        """Unbind all inputs."""
        self._inputs.unbind_all()

    def clear_binding_outputs(self) -> None:
        """Unbind all outputs and drop the results of the last run."""
        self._outputs.clear()
        self._at_places = None
        self._results = []

    def synchronize_inputs(self) -> None:
        """Wait until devices have what was copied to inputs.

        Raises:
            EPFail: A device failed.
        """
        _wait_for(self._inputs.values())

    def synchronize_outputs(self) -> None:
        """Wait until devices have computed the outputs.

        Raises:
            EPFail: A device failed.
        """
        _wait_for(value.held_value() for value in self._results)

    @property
    def session(self) -> DescribesPorts:
        """The session that made it."""
        return self._session

    def feed(self) -> BoundFeed:
        """The inputs, with what runs have found out about them."""
        return self._inputs

    def output_names(self) -> list[str]:
        """Names of the outputs that are bound."""
        return list(self._outputs)

    def places(self) -> dict[str, Place]:
        """Where outputs go, as runs of prepared graphs take it: an array, a tensor or a memory.

        Outputs in new arrays are left out.
        """
        return {name: place for name, place in self._outputs.items() if place is not None}

    def store(self, values: Sequence[Value]) -> None:
        """Take a run's results, which are at their places."""
        at_places = self._at_places
        if at_places is None:
            at_places = self._at_places = [
                None
                if place is None or isinstance(place, DeviceMemory)
                else OrtValue.holding(place)
                for place in self._outputs.values()
            ]
        self._results = [
            OrtValue.holding(value) if at_place is None else at_place
            for at_place, value in zip(at_places, values, strict=True)
        ]

    def _require_known(self, name: str, *, inputs: bool) -> str:
        known = self._types if inputs else self._known_outputs
        if name not in known:
            kind = "input" if inputs else "output"
            raise BindingError(f"Failed to find {kind} name in the mapping: {name}")
        return name

    def _require_no_text(self, name: str) -> None:
        if self._types.get(name) == "tensor(string)":
            raise BindingError(f"{NO_STRINGS}, and input {name} is text")

    @property
    def _iobinding(self) -> SessionIOBinding:
        return SessionIOBinding(self)


class SessionIOBinding:
    """An IOBinding with the signatures of onnxruntime's binding."""

    def __init__(self, session: DescribesPorts | IOBinding) -> None:
        """For a session or its `_sess`, with nothing bound yet; of an IOBinding, another face."""
        session = (
            getattr(session, "session", session) if hasattr(session, "model_meta") else session
        )
        self._binding = session if isinstance(session, IOBinding) else IOBinding(session)

    @property
    def binding(self) -> IOBinding:
        """The IOBinding behind it."""
        return self._binding

    def bind_input(self, name: str, place: Array | OrtDevice, *memory: Any) -> None:  # noqa: ANN401 - type, shape, address
        """Feed an array, or memory: device, element type, shape, address."""
        if isinstance(place, OrtDevice):
            self._binding.bind_input(name, place, 0, *memory)
        else:
            self._binding.bind_cpu_input(name, place)

    def bind_output(self, name: str, device: OrtDevice, *memory: Any) -> None:  # noqa: ANN401 - as above
        """Ask for an output, in new memory or at: element type, shape, address."""
        self._binding.bind_output(name, device, 0, *memory)

    def get_outputs(self) -> OrtValueVector:
        """Results of the last run."""
        return self._binding.get_outputs_as_ortvaluevector()

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """As IOBinding's."""
        self._binding.bind_ortvalue_input(name, ortvalue)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """As IOBinding's."""
        self._binding.bind_ortvalue_output(name, ortvalue)

    def copy_outputs_to_cpu(self) -> list[Value]:
        """As IOBinding's."""
        return self._binding.copy_outputs_to_cpu()

    def clear_binding_inputs(self) -> None:
        """As IOBinding's."""
        self._binding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        """As IOBinding's."""
        self._binding.clear_binding_outputs()

    def synchronize_inputs(self) -> None:
        """As IOBinding's."""
        self._binding.synchronize_inputs()

    def synchronize_outputs(self) -> None:
        """As IOBinding's."""
        self._binding.synchronize_outputs()


def _wait_for(values: Iterable[Value]) -> None:
    for value in values:
        if isinstance(value, DeviceTensor):
            value.wait()


def _require_ortvalue(value: object) -> None:
    if not hasattr(value, "held_value"):
        raise TypeError(f"an OrtValue is expected, not {value!r:.80}")
