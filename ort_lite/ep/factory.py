"""The factory of an execution provider: its devices, its options, and the values of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, overload, runtime_checkable

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.ep.placement_costs import PlacementCosts

TRUE_TEXTS = ("true", "True", "1")
_FALSE_TEXTS = ("false", "False", "0")
_MAX_COUNT = (1 << 16) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """A device that an EP found.

    Attributes:
        name: What the EP's device option takes, e.g. "CPU", "GPU.0".
        kind: "CPU", "GPU", "NPU" or "ACCELERATOR".
        description: Full name for a person.
        options: Provider options that open this device; none for an EP with one device.
        memory: Size of the device's memory in bytes; 0 if the driver does not report it.
        features: What the driver says that the device can do, in the vendor's own words: OpenCL
            extensions, OpenVINO's OPTIMIZATION_CAPABILITIES.
    """

    name: str
    kind: str
    description: str
    identity: HardwareIdentity
    options: Mapping[str, str] = field(default_factory=dict)
    memory: int = 0
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """The devices that an EP finds on this machine.

    Attributes:
        reason: Why there are no devices, or why not more of them; "" if nothing is missing.
        tried: What was looked at, one line each.
    """

    devices: tuple[DeviceInfo, ...] = ()
    reason: str = ""
    tried: tuple[str, ...] = ()


class EpFactory(Protocol):
    """Opens an EP: the object that an entry point of `ort_lite.execution_providers` names.

    Importing it and calling `probe` on a machine without the SDK imports no SDK. Optional
    abilities are `SupportsMissingReason`, `SupportsThreadsOption`, `SupportsUnknownOptions` and
    `SupportsEarlyLoading`.
    """

    @property
    def name(self) -> str:
        """The EP's, and of its entry point."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """Every provider option that `create` knows, with one line of help."""
        ...

    def probe(self) -> Probe:
        """Look for devices; never raises for a missing SDK, driver or device."""
        ...

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Open the device that `options` name.

        Raises:
            InvalidArgument: An option has a value that it cannot have.
            NotInstalled: There is no SDK or no driver at all; an EPFail.
            EPFail: No such device; says what was looked for.
        """
        ...


@runtime_checkable
class SupportsMissingReason(Protocol):
    """A factory that knows from files alone whether its SDK or driver is missing."""

    def missing(self) -> str:
        """Why `create` would raise NotInstalled; "" where it would not. Imports no SDK."""
        ...


@runtime_checkable
class SupportsInstallationFields(Protocol):
    """A factory that can tell from files whether it would still offer the nodes that it offered.

    Where a model ran no node on an EP, the next session with the model cache does not open it.
    """

    def installation_fields(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Texts that change where an SDK, a driver or a setting does. Imports no SDK.

        CPU, system and device files are not among them: the session looks at these itself.
        """
        ...


@runtime_checkable
class SupportsLeastCosts(Protocol):
    """A factory whose EP need not be opened for a model that would gain nothing on any device.

    Of an EP that the user did not name, a session then opens no device before it is of use.
    """

    def least_costs(self) -> PlacementCosts:
        """The lowest cost and the highest rate of each kind on all devices. Imports no SDK."""
        ...


@runtime_checkable
class SupportsStepCosts(Protocol):
    """A factory whose EP computes recurrences fast on one kind of device.

    A session of a default list that runs often then opens it for a graph of recurrences, although
    another EP runs every node.
    """

    def step_costs(self) -> PlacementCosts:
        """Costs of that kind of device, with `step_costs`. Imports no SDK."""
        ...


@runtime_checkable
class SupportsHandleOptions(Protocol):
    """A factory with options that name objects of this process, such as a command queue.

    They choose where a model runs and change nothing that is compiled, so that the model cache
    ignores them: the device is part of its keys anyway.
    """

    @property
    def handle_options(self) -> Mapping[str, str]:
        """By name of each such option, the class of its objects: "pyopencl.Context".

        Each object has the attribute `int_ptr`, whose number is what the EP reads.
        """
        ...


@runtime_checkable
class SupportsRequirementText(Protocol):
    """A factory that can put the recorded requirements of a payload into words."""

    def describe_requirements(self, recorded: HardwareIdentity) -> str:
        """What the payload needs of a machine, in one line; "" if unknown. Imports no SDK."""
        ...


@runtime_checkable
class SupportsThreadsOption(Protocol):
    """A factory with an option for the number of threads of one run.

    Attributes:
        threads_option: The option that `SessionOptions.intra_op_num_threads` is handed to.
    """

    threads_option: str


@runtime_checkable
class SupportsUnknownOptions(Protocol):
    """A factory that may ignore options which it does not know.

    Attributes:
        ignores_options: Whether it does; if not, an unknown option is an error.
    """

    ignores_options: bool


@runtime_checkable
class SupportsEarlyLoading(Protocol):
    """A factory that loads its SDK's libraries in a thread with the GIL released."""

    def begin(self, options: Mapping[str, str]) -> bool:
        """Begin to load; called before `create`, returns immediately and never raises.

        Returns:
            Whether the SDK is loaded already: overlapping `create` with other work then gains
            nothing.
        """
        ...


def read_flag(options: Mapping[str, str], key: str, *, default: bool = False) -> bool:
    """The option as true or false.

    Raises:
        InvalidArgument: Any other text.
    """
    text = options.get(key)
    if text is None:
        return default
    if text not in TRUE_TEXTS and text not in _FALSE_TEXTS:
        raise InvalidArgument(f"{key} is '{text}', expected true or false")
    return text in TRUE_TEXTS


@overload
def read_count(options: Mapping[str, str], key: str, default: int) -> int: ...
@overload
def read_count(options: Mapping[str, str], key: str, default: None = None) -> int | None: ...
def read_count(options: Mapping[str, str], key: str, default: int | None = None) -> int | None:
    """The option as a whole number from 1 to 65535; `default` where it is not set.

    Raises:
        InvalidArgument: Any other text.
    """
    text = options.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MAX_COUNT):
        raise InvalidArgument(f"{key} is '{text}', expected a whole number from 1 to {_MAX_COUNT}")
    return int(text)


def read_choice(options: Mapping[str, str], key: str, values: tuple[str, ...]) -> str:
    """The option as one of `values`, the first where it is not set.

    Raises:
        InvalidArgument: Any other text.
    """
    text = options.get(key, values[0])
    if text not in values:
        raise InvalidArgument(f"{key} is '{text}', expected one of {', '.join(values)}")
    return text
