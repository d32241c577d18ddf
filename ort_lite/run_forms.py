"""The other forms of `run`: in another thread, from OrtValues, from and to bound memory."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from ort_lite.session_answers import SessionAnswers
from ort_lite.session_log import get_logger
from ort_lite.status import BindingError, Fail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.ep.interface import Value
    from ort_lite.execution.io_binding import IOBinding, SessionIOBinding
    from ort_lite.execution.memory_info import OrtDevice, OrtMemoryInfo
    from ort_lite.execution.value_vector import OrtValueVector
    from ort_lite.execution.values import OrtValue
    from ort_lite.run_options import RunOptions

log = get_logger(__name__)


def warn_without_effect(form: str, run_options: RunOptions | None) -> None:
    """Say, as onnxruntime does, that a form of `run` heeds no adapters."""
    if run_options is not None and run_options.active_adapters:
        log.warning("%s has active adapters specified, but won't have an effect", form)


def require_run_options(run_options: object) -> None:
    """Refuse what is not a RunOptions.

    Raises:
        TypeError: As onnxruntime's binding.
    """
    if not hasattr(run_options, "active_adapters"):
        raise TypeError(f"run_options must be RunOptions, not {run_options!r:.80}")


class RunForms(SessionAnswers):
    """Methods of any session that has `run`."""

    @abstractmethod
    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        """Compute the named outputs, or all of them."""

    @abstractmethod
    def _run_plain(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        """As `run`, without the adapters of `run_options`."""

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Value], Any, str], None],
        user_data: Any = None,  # noqa: ANN401 - the caller's, handed through
        run_options: RunOptions | None = None,
    ) -> None:
        """As `run`, in a thread of the session; `callback(outputs, user_data, error)` gets them.

        `error` is "" if all went well; if not, the outputs are empty. What `callback` itself raises
        is logged. `close` waits for calls.

        Raises:
            ValueError: A required input is missing.
            Fail: The session is closed.
        """
        self._present()
        self._state.signature.feeds.require_names(input_feed)
        warn_without_effect("run_async", run_options)

        def call() -> None:
            outputs: list[Value] = []
            error = ""
            try:
                outputs = self._run_plain(output_names, input_feed, run_options)
            except Exception as exc:  # noqa: BLE001 - in this thread nobody else would hear of it
                error = str(exc) or type(exc).__name__
            try:
                callback(outputs, user_data, error)
            except Exception:
                log.exception("the callback of run_async failed")

        self._services.submit(call)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As `run`, from OrtValues to OrtValues."""
        from ort_lite.execution.values import OrtValue  # noqa: PLC0415 - lazy: rare

        return [
            OrtValue.holding(v) for v in self.run(output_names, input_dict_ort_values, run_options)
        ]

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Memory of each input: host memory."""
        from ort_lite.execution.memory_info import OrtMemoryInfo  # noqa: PLC0415 - lazy: rare

        return [OrtMemoryInfo() for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Memory of each output: host memory."""
        from ort_lite.execution.memory_info import OrtMemoryInfo  # noqa: PLC0415 - lazy: rare

        return [OrtMemoryInfo() for _ in self.get_outputs()]

    def get_input_epdevices(self) -> list[None]:
        """For each input the device whose memory it is best in: None, for host memory."""
        return [None for _ in self.get_inputs()]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs to be bound to memory, for `run_with_iobinding`."""
        from ort_lite.execution.io_binding import IOBinding  # noqa: PLC0415 - lazy: rare

        return IOBinding(self)

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice],
    ) -> None:
        """As `run`, from a vector of OrtValues to the end of another.

        Raises:
            BindingError: A device of `fetch_devices` is not the host.
            ValueError: `feed_names` and `feeds` differ in length.
        """
        from ort_lite.execution.memory_info import require_host  # noqa: PLC0415 - lazy: rare

        for device in fetch_devices:
            require_host(device)
        feed = dict(zip(feed_names, feeds, strict=True))
        for value in self.run_with_ort_values(fetch_names, feed, run_options):
            fetches.push_back(value)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,  # noqa: ANN401 - a numpy type or an ONNX number, as in onnxruntime
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """As `OrtValue.ortvalue_from_shape_and_type`: no session here has memory of its own."""
        from ort_lite.execution.values import OrtValue  # noqa: PLC0415 - lazy: rare

        return OrtValue.ortvalue_from_shape_and_type(
            shape, element_type, device_type, device_id, vendor_id
        )

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """Empty: execution providers keep what they measured in their own caches and payloads."""
        return []

    def set_tuning_results(
        self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False
    ) -> None:
        """Take nothing over, as no execution provider here has results in onnxruntime's form.

        Raises:
            Fail: There are some, and `error_on_invalid` is set; ONNX Runtime raises it for
                results of an execution provider that the session does not have.
        """
        if error_on_invalid and results:
            names = sorted({str(result.get("ep", "")) for result in results})
            raise Fail(f"Cannot find execution provider {', '.join(names)} with tuning results")

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Nothing: no execution provider here captures graphs of runs."""
        log.debug("graph %d: no execution provider captures any", graph_annotation_id)

    def run_with_iobinding(
        self, iobinding: IOBinding | SessionIOBinding, run_options: RunOptions | None = None
    ) -> None:
        """As `run`, from and to the memory bound.

        Raises:
            ValueError: The binding is another session's; onnxruntime's class.
            InvalidArgument: An output does not fit the memory bound to it.
            BindingError: No output is bound; a RuntimeError, too.
        """
        from ort_lite.execution.io_binding import SessionIOBinding  # noqa: PLC0415 - lazy: rare

        if isinstance(iobinding, SessionIOBinding):
            iobinding = iobinding.binding
        if iobinding.session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        output_names = iobinding.output_names()
        if not output_names:
            raise BindingError("Error in execution: At least one output should be requested.")
        warn_without_effect("run_with_iobinding", run_options)
        values = self._run_plain(output_names, iobinding.feed(), run_options)
        iobinding.store(values)
