"""Session options, with ONNX Runtime's names and defaults."""

from __future__ import annotations

import os
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, NoReturn

from ctx_formats.lean_dataclass import dataclass, field, replace
from ort_lite.context.keys import (
    CACHE_SHAPES_KEY,
    COMPILE_LATER_KEY,
    MAX_DATA_SIZE,
    SPECIALIZE_KEY,
    asks_for_cache,
)
from ort_lite.context.keys import TRUST_KEY as TRUST_KEY  # for layers below `context`
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    from ort_lite.context.data import ReadFunc
    from ort_lite.ep.kernels import KernelDef
    from ort_lite.execution.values import OrtValue
    from ort_lite.model.added_initializers import AddedInitializers, Buffer
    from ort_lite.providers.device_policy import (
        Delegate,
        MeasuredPolicy,
        OrtExecutionProviderDevicePolicy,
    )
    from ort_lite.providers.devices import OrtEpDevice

    Progress = Callable[[str, int, int], None]

    class SessionGroup(Protocol):
        """A `SharedContexts`, as far as options know it: they only carry it."""

        replaces_models: bool

        def join(self, options: SessionOptions) -> SessionOptions:
            """Make sessions with `options` members of the group."""
            ...


MAX_KEY_LENGTH = 1024
MAX_VALUE_LENGTH = 8192
RUNS_BEFORE_PLANS = 256
"""A plan costs about 0.3 s of processor time, and saves some 0.1 ms of a small model's run."""
RUNS_WITH_CACHE = 32
"""The same where the model cache keeps plans: the programs that use it start again and again."""
RUNS_BY_ESTIMATE = -1
"""As many as take less time than a compile, by an estimate."""


class _BindingEnum(IntEnum):
    """Reads as the binding's: str() is `Class.MEMBER`, where IntEnum gives the number."""

    __str__ = Enum.__str__
    __format__ = Enum.__format__


class GraphOptimizationLevel(_BindingEnum):
    """How much the graph may be rewritten before it is partitioned."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_BindingEnum):
    """Whether independent parts of a graph may run at the same time."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_BindingEnum):
    """In which order ready nodes run."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass(slots=True)
class Cancellation:
    """Shared by an options object and its copies, so that another thread can set it."""

    requested: bool = False


@dataclass(frozen=True, slots=True)
class DataReader:
    """The user's place for payloads, and how large one may be."""

    func: ReadFunc
    max_size: int


_FLAGS = "enable_cpu_mem_arena enable_mem_pattern enable_mem_reuse enable_profiling"
_NUMBERS = "inter_op_num_threads intra_op_num_threads log_severity_level log_verbosity_level"
ATTRIBUTE_TYPES: dict[str, type] = {
    **dict.fromkeys(f"{_FLAGS} use_deterministic_compute use_per_session_threads".split(), bool),
    **dict.fromkeys(_NUMBERS.split(), int),
    **dict.fromkeys(["logid", "optimized_model_filepath", "profile_file_prefix"], str),
    "execution_mode": ExecutionMode,
    "execution_order": ExecutionOrder,
    "graph_optimization_level": GraphOptimizationLevel,
}
"""Attributes of onnxruntime's SessionOptions, with their types."""


@dataclass(slots=True, eq=False)
class SessionOptions:
    """Options of one session; a copy is taken when the session is made.

    The attributes that steer memory arenas and profiling files exist so that code written
    for onnxruntime runs; what an option does here is said in docs/options.md.
    """

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    inter_op_num_threads: int = 0
    intra_op_num_threads: int = 0
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    _config: dict[str, str] = field(default_factory=dict, repr=False)
    _providers: list[tuple[str, dict[str, str]]] = field(default_factory=list, repr=False)
    _dimensions: dict[str, int] = field(default_factory=dict, repr=False)
    _denoted: dict[str, int] = field(default_factory=dict, repr=False)
    _cancel: Cancellation = field(default_factory=lambda: Cancellation(), repr=False)
    _read_data: DataReader | None = field(default=None, repr=False)
    _group: SessionGroup | None = field(default=None, repr=False)
    _progress: Progress | None = field(default=None, repr=False)
    _kernels: list[KernelDef] = field(default_factory=list, repr=False)
    _policy: OrtExecutionProviderDevicePolicy | MeasuredPolicy | None = field(
        default=None, repr=False
    )
    _delegate: Delegate | None = field(default=None, repr=False)
    _weights: AddedInitializers | None = field(default=None, repr=False)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; a value of another type than its own is a TypeError."""
        kind = ATTRIBUTE_TYPES.get(name, type(value))
        if type(value) is not kind:
            from ort_lite.attribute_values import convert_value  # noqa: PLC0415 - lazy: rare

            value = convert_value("SessionOptions", name, value, kind)
        object.__setattr__(self, name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry; a key that no one knows is kept, as ONNX Runtime does.

        Raises:
            RuntimeError: The key is empty or over 1,024 characters; onnxruntime's class.
            InvalidArgument: The value is over 8,192 characters.
            TypeError: One of them is not text.
        """
        if not (type(key) is type(value) is str and 0 < len(key) <= MAX_KEY_LENGTH):
            from ort_lite.attribute_values import check_entry  # noqa: PLC0415 - lazy: rare

            check_entry(key, value, MAX_KEY_LENGTH)
        if len(value) > MAX_VALUE_LENGTH:
            raise InvalidArgument(f"Config value is longer than maximum length: {MAX_VALUE_LENGTH}")
        self._config[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value of an entry.

        Raises:
            RuntimeError: Not set; ONNX Runtime raises the same.
        """
        if key not in self._config:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_provider(
        self, provider_name: str, provider_options: Mapping[str, str] | None = None
    ) -> None:
        """Append an execution provider; the order of calls is the order of preference.

        Raises:
            UnknownProvider: The name is not known; an InvalidArgument, and a RuntimeError, too.
            InvalidArgument: It is not installed, or its SDK is not.
        """
        from ort_lite.providers.catalog import require_addable  # noqa: PLC0415 - lazy: reload

        require_addable(provider_name)
        self._providers.append((provider_name, dict(provider_options or {})))

    def add_provider_for_devices(
        self, ep_devices: Sequence[OrtEpDevice], provider_options: Mapping[str, str] | None = None
    ) -> None:
        """Append the execution provider of devices that `get_ep_devices` gave.

        An execution provider runs on one device: of several the first is taken.

        Raises:
            InvalidArgument: No device, or devices of several execution providers.
        """
        from ort_lite.providers.devices import chosen_provider  # noqa: PLC0415 - lazy: rare

        options, argument = provider_options or {}, "add_provider_for_devices"
        self.add_provider(*chosen_provider(ep_devices, options, argument=argument))

    def set_provider_selection_policy(
        self, policy: OrtExecutionProviderDevicePolicy | MeasuredPolicy
    ) -> None:
        """Choose execution providers by their devices or by runs, where the user names none."""
        self._policy, self._delegate = policy, None

    def set_provider_selection_policy_delegate(self, delegate: Delegate) -> None:
        """Let `delegate` choose execution providers, where the user names none.

        Args:
            delegate: Gets the devices (best first), the model's metadata, a reserved mapping
                and how many it may give at most; gives those that it wants, in order.
        """
        self._policy, self._delegate = None, delegate

    @property
    def selects_devices(self) -> bool:
        """Whether a policy or a delegate is set."""
        return self._policy is not None or self._delegate is not None

    @property
    def selection_policy(self) -> OrtExecutionProviderDevicePolicy | MeasuredPolicy | None:
        """The policy, where one is set."""
        return self._policy

    @property
    def selects_by_runs(self) -> bool:
        """Whether the policy is FASTEST: a session compiles for each device and measures."""
        return self._policy is not None and self._policy.name == "FASTEST"

    @property
    def selection_delegate(self) -> Delegate | None:
        """The delegate, where one is set."""
        return self._delegate

    def register_custom_ops_library(self, path: str | os.PathLike[str]) -> NoReturn:
        """Refuse a library of operators in C++, such as that of onnxruntime-extensions.

        Raises:
            Fail: Always: onnxruntime's C API, which such a library calls, is not here.
        """
        if not os.path.isfile(path):  # noqa: PTH113 - no pathlib here
            raise Fail(f"Failed to load library {path} with error: the file does not exist")
        raise Fail(
            f"Failed to load library {path}: libraries of operators in C++ call onnxruntime's C "
            "API, which ort_lite does not have. Write the operators as kernels in Python: "
            "SessionOptions.register_custom_kernel, docs/custom_kernels.md"
        )

    def register_custom_kernel(self, definition: KernelDef) -> None:
        """Run an operator with a kernel of the user's own, before those of the CPU EP.

        Args:
            definition: From `ort_lite.ep.kernel`; see docs/custom_kernels.md.

        Raises:
            Fail: A kernel registered before serves the same versions and types.
        """
        from ort_lite.ep.kernels import KernelRegistry  # noqa: PLC0415 - lazy: reload

        registry = KernelRegistry("SessionOptions")
        for known in (*self._kernels, definition):
            registry.register(known)
        self._kernels.append(definition)

    @property
    def custom_kernels(self) -> tuple[KernelDef, ...]:
        """Custom kernels in the order of registration."""
        return tuple(self._kernels)

    def has_providers(self) -> bool:
        """Whether an execution provider was added."""
        return bool(self._providers)

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fix the symbolic dimension `name` to `value` when the model is loaded.

        Raises:
            TypeError: `value` is not a whole number.
            InvalidArgument: It is not positive.
        """
        _require_positive(name, value)
        self._dimensions[name] = value

    def add_free_dimension_override_by_denotation(self, name: str, value: int) -> None:
        """Fix dimensions of the inputs that mean `name` ("DATA_BATCH") to `value`.

        Upper and lower case are the same, and the first of two values for one name counts, as in
        ONNX Runtime. A dimension with another size of its own is an error of the session.

        Raises:
            TypeError: `value` is not a whole number.
            InvalidArgument: It is not positive.
        """
        _require_positive(name, value)
        self._denoted.setdefault(name.lower(), value)

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Use `ort_value` in place of the initializer `name`, where the model has one.

        Raises:
            InvalidArgument: One was added for that name.
        """
        self._own_weights().override(name, ort_value)

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Use `values` in place of initializers with external data; the files are not read.

        Raises:
            ValueError: The lists differ in length.
            InvalidArgument: One was added for a name.
        """
        self._own_weights().supply(names, values)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[Buffer], lengths: Sequence[int]
    ) -> None:
        """Use `buffers` in place of files of external data, of which none is read then.

        Args:
            names: Locations, as the model has them.
            buffers: Kept alive, not copied.
            lengths: In bytes; what a buffer has beyond is not looked at.

        Raises:
            ValueError: The lists differ in length, or a buffer is too short.
        """
        self._own_weights().supply_files(names, buffers, lengths)

    @property
    def added_initializers(self) -> AddedInitializers | None:
        """Initializers that the program supplied; None if it supplied none."""
        return self._weights

    def _own_weights(self) -> AddedInitializers:
        if self._weights is None:
            from ort_lite.model.added_initializers import AddedInitializers  # noqa: PLC0415 - lazy: rare

            self._weights = AddedInitializers()
        return self._weights

    def set_load_cancellation_flag(self, value: bool) -> None:  # noqa: FBT001 - onnxruntime's signature
        """Stop (or not) the loading and compiling that runs with these options.

        May be called from another thread; takes effect before the next partition.
        """
        self._cancel.requested = value

    @property
    def is_canceled(self) -> Callable[[], bool]:
        """A function that returns whether cancellation was requested."""
        cancel = self._cancel
        return lambda: cancel.requested

    def set_progress_func(self, func: Progress | None) -> None:
        """Call `func(partition, how many are done, how many there are)` before each compile.

        None calls nothing again. An exception from it stops the loading and compiling.
        """
        self._progress = func

    @property
    def progress(self) -> Progress | None:
        """The progress callback, if set."""
        return self._progress

    def set_ep_context_data_read_func(
        self, read_func: ReadFunc, max_data_size: int = MAX_DATA_SIZE
    ) -> None:
        """Get payloads from `read_func(name, OrtEpContextDataBuffer)` instead of files."""
        self._read_data = DataReader(read_func, max_data_size)

    def clear_ep_context_data_read_func(self) -> None:
        """Read payload files again."""
        self._read_data = None

    @property
    def read_data(self) -> DataReader | None:
        """The user's place for payloads, where there is one."""
        return self._read_data

    def set_shared_contexts(self, group: SessionGroup) -> None:
        """Make sessions with these options members of a group; see `SharedContexts.join`."""
        self._config["ep.share_ep_contexts"] = "1"
        self._group = group

    @property
    def shared_contexts(self) -> SessionGroup | None:
        """The group that was named, where `ep.share_ep_contexts` is set."""
        return self._group

    @property
    def config(self) -> Mapping[str, str]:
        """All entries, read-only by convention."""
        return self._config

    @property
    def providers(self) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """Providers added so far, with their options."""
        return tuple(self._providers)

    @property
    def free_dimensions(self) -> Mapping[str, int]:
        """Free dimension overrides by symbolic name."""
        return self._dimensions

    @property
    def denoted_dimensions(self) -> Mapping[str, int]:
        """Free dimension overrides by denotation, in lower case."""
        return self._denoted

    def snapshot(self) -> SessionOptions:
        """A copy that later changes to this object do not reach."""
        return replace(
            self,
            _config=dict(self._config),
            _providers=[(name, dict(options)) for name, options in self._providers],
            _dimensions=dict(self._dimensions),
            _denoted=dict(self._denoted),
            _kernels=list(self._kernels),
            _weights=self._weights.copy() if self._weights is not None else None,
        )

    def with_providers(self, providers: Sequence[tuple[str, Mapping[str, str]]]) -> SessionOptions:
        """A copy with these in place of the providers, policy and delegate that it has."""
        added = [(name, dict(options)) for name, options in providers]
        return replace(self.snapshot(), _providers=added, _policy=None, _delegate=None)

    def without(self, key: str) -> SessionOptions:
        """A copy in which the entry `key` is not set; these options where it is not anyway."""
        if key not in self._config:
            return self
        config = {name: value for name, value in self._config.items() if name != key}
        return replace(self.snapshot(), _config=config)

    def runs_before_plans(self) -> int:
        """Runs after which shapes that come again and again get a plan of their own; 0 for never.

        Raises:
            InvalidArgument: It is not a whole number of at most 9 digits.
        """
        runs = self._read_runs(SPECIALIZE_KEY, "0 for no such plans")
        if runs is not None:
            return runs
        learns = self.config.get(CACHE_SHAPES_KEY) != "0"
        is_kept = learns and asks_for_cache(self.config, os.environ)
        return RUNS_WITH_CACHE if is_kept else RUNS_BEFORE_PLANS

    def runs_before_compile(self) -> int:
        """Runs that the default EP answers before the others compile; 0 to compile at once.

        RUNS_BY_ESTIMATE for `auto`.

        Raises:
            InvalidArgument: It is neither that nor a whole number of at most 9 digits.
        """
        if self.config.get(COMPILE_LATER_KEY) == "auto":
            return RUNS_BY_ESTIMATE
        zero = "`auto`, or 0 to compile before the session is ready"
        return self._read_runs(COMPILE_LATER_KEY, zero) or 0

    def _read_runs(self, key: str, zero: str) -> int | None:
        text = self.config.get(key)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise InvalidArgument(f"{key} is '{text}', expected a number of runs, or {zero}")
        return int(text)

    def flag(self, key: str) -> bool:
        """Whether an entry is "1"; anything else is false, as in ONNX Runtime."""
        return self._config.get(key) == "1"


def _require_positive(name: str, value: int) -> None:
    if not hasattr(value, "__index__"):
        raise TypeError(f"free dimension override {name} is {value!r:.80}, expected a whole number")
    if value < 1:
        raise InvalidArgument(f"free dimension override {name}={value} is not positive")
