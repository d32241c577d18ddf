"""The forms of `run`: with a feed, in another thread, from OrtValues, with bound memory."""

from __future__ import annotations

from abc import abstractmethod
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ort_lite.session_answers import SessionAnswers
from ort_lite.session_log import DEBUG, get_logger, logging_as, scope_of
from ort_lite.shortages import KINDS, as_status
from ort_lite.start.load_request import FIRST_RUN
from ort_lite.status import BindingError, EPFail, Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ort_lite.ep.device_tensors import DeviceMemory, Place
    from ort_lite.ep.interface import Value
    from ort_lite.execution.io_binding import IOBinding, SessionIOBinding
    from ort_lite.execution.value_vector import OrtValueVector
    from ort_lite.execution.values import OrtValue
    from ort_lite.planning.prepared_graph import PreparedGraph
    from ort_lite.providers.devices import OrtEpDevice
    from ort_lite.providers.memory_info import OrtDevice, OrtMemoryInfo
    from ort_lite.run_options import RunOptions
    from ort_lite.session_log import LogScope
    from ort_lite.start.prepare_model import PreparedModel

log = get_logger(__name__)

CLOSED_MEANWHILE = "the session was closed by another thread while it ran"


def warn_without_effect(form: str, run_options: RunOptions | None) -> None:
    """Warn, as onnxruntime does, that a form of `run` ignores active adapters."""
    if run_options is not None and run_options.active_adapters:
        log.warning("%s has active adapters specified, but won't have an effect", form)


def require_run_options(run_options: object) -> None:
    """Refuse what is not a RunOptions.

    Raises:
        TypeError: As onnxruntime's binding.
    """
    if not hasattr(run_options, "active_adapters"):
        raise TypeError(f"run_options must be RunOptions, not {run_options!r:.80}")


def memories_of(model: PreparedModel) -> list[DeviceMemory]:
    """Memory of the devices of a model's execution providers."""
    memories = [getattr(ep, "memory", None) for ep in model.eps]
    return [memory for memory in memories if memory is not None]


def hand_out(values: Iterable[Value]) -> list[Value]:
    """Outputs as a caller gets them: arrays are views, whose `base` onnxruntime's have, too."""
    return [value.view() if hasattr(value, "view") else value for value in values]


class RunForms(SessionAnswers):
    """A session as a model that runs: `run`, and every other form of it."""

    _log_scope: LogScope
    _runs_to_watch: int = 0
    """Runs until shapes are counted; below 0 once they are, or never are."""
    _runs_before_plans: int = 0
    """Runs after which shapes that come again and again get a plan, those included."""

    @abstractmethod
    def _count_shapes(self, model: PreparedModel) -> None:
        """Make plans for input shapes that come again and again from now on."""

    @abstractmethod
    def _count_sooner(self) -> None:
        """After the first run: have plans made sooner where runs take long."""

    @abstractmethod
    def _fall_back_after(self, error: EPFail, failed: PreparedGraph) -> PreparedGraph:
        """The graph that replaces `failed` from now on: the model on the CPU EP alone.

        Raises:
            EPFail: `error`, where fallback is disabled or the CPU EP cannot run the model.
        """

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        """Compute outputs.

        Args:
            output_names: Which outputs, in which order; None or empty for all.
            input_feed: Input name to numpy array (or a list, a scalar, an OrtValue).
            run_options: `terminate`, also set by another thread while the call lasts, stops
                it before the next node of the CPU EP or the next partition of another one.
                Parameters of its active adapters are fed as well.

        Returns:
            Arrays that belong to the caller; no later run changes them.

        Raises:
            ValueError: A required input is missing.
            InvalidArgument: A wrong name, type, rank or dimension.
            Fail: The session is closed, or `terminate` was set.
            EPFail: An execution provider failed, and the session does not go on with the CPU EP
                (`disable_fallback`; EPContext nodes, which it cannot run).
        """
        if isinstance(output_names, str):
            raise TypeError(f"output_names must be a sequence of names, not {output_names!r}")
        if run_options is not None:
            require_run_options(run_options)
        if run_options is not None and run_options.active_adapters:
            from ort_lite.execution.adapters import with_adapters  # noqa: PLC0415 - lazy: rare

            input_feed = with_adapters(input_feed, run_options.active_adapters)
        return self._run_plain(output_names, input_feed, run_options)

    def _run_plain(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
        places: Mapping[str, Place] | None = None,
    ) -> list[Value]:
        deferred = self._state.deferred
        is_due = deferred is not None and deferred.is_due(input_feed)
        model = self._settle() if is_due else self._present()
        began = perf_counter() if FIRST_RUN not in self._clock.phases else None
        try:
            results = self._compute(model.prepared, input_feed, run_options, places)
        except (AttributeError, LookupError, TypeError) as exc:
            if self._state.model is not None:
                raise
            raise Fail(CLOSED_MEANWHILE) from exc
        if (
            self._state.model is None
        ):  # what was released meanwhile may have left holes in the results
            raise Fail(CLOSED_MEANWHILE)
        if not results:
            raise InvalidArgument("At least one output should be requested.")
        if began is not None:
            self._clock.note_first_run(perf_counter() - began)
            self._count_sooner()
        if self._state.model is model:
            self._note_run(model)
        for mismatch in self._state.signature.list_mismatches(results):
            with logging_as(self._log_scope):
                log.warning("%s", mismatch)
        if output_names:
            results = self._state.signature.select(results, output_names)
        return hand_out(results)

    def _note_run(self, model: PreparedModel) -> None:
        """Count a run that `model` has answered."""
        if model.after_run is not None:
            model.after_run()
        if self._runs_to_watch >= 0:
            if self._runs_to_watch == 0:
                self._count_shapes(model)
            self._runs_to_watch -= 1

    def _compute(
        self,
        prepared: PreparedGraph,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        places: Mapping[str, Place] | None,
    ) -> Sequence[Value]:
        """Results of `prepared`, or of the CPU EP where another one has failed."""
        try:
            return self._run_prepared(prepared, input_feed, run_options, places)
        except EPFail as exc:
            prepared = self._fall_back_after(exc, prepared)
            return self._run_prepared(prepared, input_feed, run_options, places)
        except KINDS as exc:
            status = as_status(exc, "the run failed")
            if status is None:
                raise
            raise status from exc

    def _run_prepared(
        self,
        prepared: PreparedGraph,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        places: Mapping[str, Place] | None,
    ) -> Sequence[Value]:
        if run_options is not None or self._is_watched:
            return self._run_watched(prepared, input_feed, run_options, places)
        return self._state.signature.run(prepared, input_feed, places)

    def _run_watched(
        self,
        prepared: PreparedGraph,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        places: Mapping[str, Place] | None,
    ) -> Sequence[Value]:
        if run_options is None and not self._services.is_watched:
            with logging_as(self._log_scope):
                if not log.isEnabledFor(DEBUG):  # a log level or id alone slows no node down
                    return self._state.signature.run(prepared, input_feed, places)
        from ort_lite.execution.run_context import RunContext, running  # noqa: PLC0415 - lazy: reload

        context = RunContext(run_options, self._services.profiler, self._services.helpers)
        context.check()
        scope = self._log_scope
        if run_options is not None:
            scope = scope_of(run_options).inherit_from(scope)
        with logging_as(scope), self._services.span("model_run"), running(context):
            results = self._state.signature.run(prepared, input_feed, places)
            log.debug("the run of %r has ended", self)
        return results

    @property
    def _is_watched(self) -> bool:
        is_logged = not self._log_scope.is_plain or log.isEnabledFor(DEBUG)
        return is_logged or self._services.is_watched

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
            except Exception as exc:  # noqa: BLE001 - an error in this thread would be lost
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
        """As `run`, from OrtValues to OrtValues in host memory; inputs stay where they are."""
        from ort_lite.execution.values import OrtValue  # noqa: PLC0415 - lazy: rare

        return [
            OrtValue.holding(v) for v in self.run(output_names, input_dict_ort_values, run_options)
        ]

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """For each input the memory that a run reads it from without a copy.

        That is a device's if all partitions that read the input run there, and host memory if not.
        """
        from ort_lite.planning.port_memory import infos_of, input_memories  # noqa: PLC0415 - lazy: rare

        names = [one.name for one in self.get_inputs()]
        return infos_of(input_memories(self._settle().prepared.partitions, names))

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """For each output the memory that the partition which computes it writes to."""
        from ort_lite.planning.port_memory import infos_of, output_memories  # noqa: PLC0415 - lazy: rare

        inputs = [one.name for one in self.get_inputs()]
        names = [one.name for one in self.get_outputs()]
        return infos_of(output_memories(self._settle().prepared.partitions, inputs, names))

    def get_input_epdevices(self) -> list[OrtEpDevice | None]:
        """For each input the device of the execution provider that reads it first.

        None for an input that nothing reads, and where the device is not among those that
        `get_ep_devices` lists.
        """
        from ort_lite.planning.port_memory import first_readers  # noqa: PLC0415 - lazy: rare
        from ort_lite.providers.devices import find_ep_device  # noqa: PLC0415 - lazy: rare

        names = [one.name for one in self.get_inputs()]
        options = self.get_provider_options()
        readers = first_readers(self._settle().prepared.partitions, names)
        devices = {
            ep.name: find_ep_device(ep.name, ep.identity, options[ep.name])
            for ep in readers
            if ep is not None
        }
        return [None if ep is None else devices[ep.name] for ep in readers]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs to be bound to memory, for `run_with_iobinding`."""
        from ort_lite.execution.io_binding import IOBinding  # noqa: PLC0415 - lazy: rare

        return IOBinding(self)

    def device_memories(self) -> list[DeviceMemory]:
        """Memory of the devices of its execution providers, for those that have tensors there."""
        return memories_of(self._settle())

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
            BindingError: There is no such device as one of `fetch_devices`.
            ValueError: `feed_names` and `feeds` differ in length.
        """
        binding = self.io_binding()
        for name, value in zip(feed_names, feeds, strict=True):
            binding.bind_ortvalue_input(name, value)
        for name, device in zip(fetch_names, fetch_devices, strict=False):
            binding.bind_output(name, device)
        for name in fetch_names[len(fetch_devices) :]:
            binding.bind_output(name)
        self.run_with_iobinding(binding, run_options)
        for value in binding.get_outputs():
            fetches.push_back(value)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,  # noqa: ANN401 - a numpy type or an ONNX number, as in onnxruntime
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """As `OrtValue.ortvalue_from_shape_and_type`, in the memory that this session runs in."""
        from ort_lite.execution.device_values import find_memory  # noqa: PLC0415 - lazy: rare
        from ort_lite.execution.values import OrtValue  # noqa: PLC0415 - lazy: rare

        memory = find_memory(device_type, device_id, vendor_id, self.device_memories())
        return OrtValue.make(shape, element_type, memory)

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Change options of execution providers while the session lives.

        No shipped provider supports dynamic options; they are ignored with a warning, as in ONNX
        Runtime.

        Raises:
            RuntimeError: There are none, as in ONNX Runtime.
            Fail: The session is closed.
        """
        self._present()
        if not options:
            raise RuntimeError("No options were provided")
        with logging_as(self._log_scope):
            log.warning("%s: no execution provider supports %s", self, ", ".join(sorted(options)))

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
        places = iobinding.places()
        values = self._run_plain(output_names, iobinding.feed(), run_options, places)
        iobinding.store(values)
