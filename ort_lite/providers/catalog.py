"""Execution providers that are installed, found through their entry points."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ctx_formats.lean_dataclass import dataclass
from ort_lite import forks
from ort_lite.ep.factory import (
    SupportsHandleOptions,
    SupportsMissingReason,
    SupportsUnknownOptions,
)
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail, Fail, InvalidArgument, UnknownProvider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ort_lite.ep.factory import EpFactory, Probe
    from ort_lite.ep.interface import ExecutionProvider

GROUP = "ort_lite.execution_providers"
DISTRIBUTION = "ort_lite"
DIST_INFO = ".dist-info"
FACTORY_PARTS = ("name", "options", "probe", "create")
DEFAULT_PROVIDER = "CPUExecutionProvider"
"""The EP that runs what no other takes; appended when the user leaves it out."""

ORT_PROVIDERS = tuple(
    f"{name}ExecutionProvider"
    for name in (
        *("NvTensorRTRTX", "Tensorrt", "CUDA", "MIGraphX", "OpenVINO", "Dnnl", "VitisAI", "QNN"),
        *("Nnapi", "VSINPU", "Js", "CoreML", "ACL", "Dml", "Rknpu", "WebNN", "WebGpu", "Xnnpack"),
        *("CANN", "Azure", "CPU"),
    )
)
"""Providers that get_all_providers of onnxruntime 1.31.1 returns, in its order."""

log = get_logger(__name__)

registered: dict[str, ProviderEntry] = {}
"""By registration name, what `ort_lite.providers.registered_libraries` added to this process."""


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """One entry point: an EP's name and `module:attribute` of its factory.

    Attributes:
        distribution: Name of the installed distribution that has it.
        version: Of the distribution.
    """

    name: str
    target: str
    distribution: str = ""
    version: str = ""

    def load(self) -> EpFactory:
        """Import the factory.

        Raises:
            EPFail: The distribution is broken; says what is wrong with it.
        """
        factory = self.load_any_name()
        if factory.name != self.name:
            raise EPFail(
                f"{self._where()} declares '{factory.name}', which is not its entry-point name"
            )
        return factory

    def load_any_name(self) -> EpFactory:
        """Import the factory, whatever the execution provider is that it makes.

        Raises:
            EPFail: As `load`.
        """
        module, _, attribute = self.target.partition(":")
        where = self._where()
        try:
            factory = getattr(import_module(module), attribute)
        except Exception as exc:
            raise EPFail(f"{where} cannot be imported: {exc}") from exc
        missing = [part for part in FACTORY_PARTS if not hasattr(factory, part)]
        if missing:
            raise EPFail(f"{where} is not a factory: it has no {', '.join(missing)}")
        return cast("EpFactory", factory)

    def _where(self) -> str:
        whose = f"the execution provider '{self.name}'" if self.name else self.distribution
        return f"{whose} is installed but its factory {self.target}"


def entries(search_path: Sequence[str] | None = None) -> dict[str, ProviderEntry]:
    """Installed and registered EPs in order of preference, the default EP last.

    Registered and separately installed ones come first, by name, then those that ship with
    ort_lite, in reverse alphabetical order; pass `providers` to choose another order.
    Reads entry_points.txt of the distributions on `search_path` (sys.path if None) itself:
    importlib.metadata takes longer to import than a cached model takes to load.

    Raises:
        Fail: Two distributions provide the same name with different targets.
    """
    by_name: dict[str, ProviderEntry] = {}
    brought = registered.values() if search_path is None else ()
    for entry in (*brought, *_scan(sys.path if search_path is None else search_path)):
        known = by_name.setdefault(entry.name, entry)
        if known.target != entry.target:
            raise Fail(
                f"two installed distributions provide '{entry.name}': "
                f"{known.target} and {entry.target}; uninstall one"
            )
    shipped = {name for name, entry in by_name.items() if entry.distribution == DISTRIBUTION}
    order = sorted(by_name.keys() - shipped) + sorted(shipped, reverse=True)
    order.sort(key=lambda name: name == DEFAULT_PROVIDER)
    return {name: by_name[name] for name in order}


def require_installed(name: str, installed: Mapping[str, ProviderEntry]) -> ProviderEntry:
    """The entry of an execution provider among those installed.

    Raises:
        UnknownProvider: None of this name is.
    """
    if name not in installed:
        raise UnknownProvider(
            f"Unknown Provider Type: {name}. Installed: {list(installed)}. "
            'pip install "ort-lite[all]" installs those of ort_lite.'
        )
    return installed[name]


def get_available_providers() -> list[str]:
    """Names of the EPs whose SDK is installed here, in order of preference, the default EP last.

    Whether there is a device, `get_ep_devices` says, which asks every SDK.
    """
    return [name for name, entry in entries().items() if not _missing(entry)]


def get_all_providers() -> list[str]:
    """Names of all EPs that ONNX Runtime knows, as it orders them, after others installed here."""
    return [*(name for name in entries() if name not in ORT_PROVIDERS), *ORT_PROVIDERS]


def require_present(name: str) -> None:
    """Check that an execution provider is installed, with its SDK.

    Raises:
        UnknownProvider: None of this name is.
        EPFail: Its distribution is broken.
        NotInstalled: Its SDK or driver is not there; an EPFail.
    """
    missing = _missing(require_installed(name, entries()))
    if missing:
        from ort_lite.ep.interface import NotInstalled  # noqa: PLC0415 - lazy: reload

        raise NotInstalled(missing)


def _missing(entry: ProviderEntry) -> str:
    """Why an EP cannot be opened, as far as can be said without its SDK."""
    try:
        factory = entry.load()
    except EPFail as exc:
        return exc.message
    return factory.missing() if isinstance(factory, SupportsMissingReason) else ""


def probe_all() -> dict[str, Probe]:
    """By EP name, the devices that its factory finds on this machine."""
    return {name: entry.load().probe() for name, entry in entries().items()}


def require_addable(name: str) -> None:
    """Check that `SessionOptions.add_provider` may add an execution provider.

    Raises:
        UnknownProvider: The name is not known.
        InvalidArgument: It is known and not here, with ONNX Runtime's text.
    """
    installed = entries()
    if name in ORT_PROVIDERS and name not in installed:
        raise InvalidArgument(_not_addable(name, f"Installed: {list(installed)}."))
    missing = _missing(require_installed(name, installed))
    if missing:
        raise InvalidArgument(_not_addable(name, missing))


def _not_addable(name: str, why: str) -> str:
    return (
        f"Failed to add provider of type '{name}' to SessionOptions. Provider configuration is "
        f"not supported. {why}"
    )


def handle_options(provider: str) -> Mapping[str, str]:
    """Options of a provider that name objects of this process; see `SupportsHandleOptions`."""
    entry = entries().get(provider)
    if entry is None:
        return {}
    factory = entry.load()
    return factory.handle_options if isinstance(factory, SupportsHandleOptions) else {}


def read_handle(provider: str, key: str, value: Any) -> str:  # noqa: ANN401 - an object of an SDK
    """The handle of an object that is the value of a provider's option, as text.

    Raises:
        InvalidArgument: The option accepts no objects, or only those of another class.
    """
    expected = handle_options(provider).get(key, "")
    package, _, name = expected.rpartition(".")
    if any(
        one.__name__ == name and one.__module__.split(".")[0] == package
        for one in type(value).__mro__
    ):
        return str(value.int_ptr)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    accepted = f"a {expected} or its int_ptr as a number" if expected else "a text or a number"
    raise InvalidArgument(f"{key} is a {kind} ({value!r:.80}), expected {accepted}")


def open_provider(entry: ProviderEntry, options: Mapping[str, str]) -> ExecutionProvider:
    """Open one EP.

    Raises:
        InvalidArgument: An option that the EP does not know, or a value it cannot take.
        EPFail: Its SDK, driver or device is not there.
    """
    factory = entry.load()
    unknown = [key for key in options if key not in factory.options]
    if unknown and isinstance(factory, SupportsUnknownOptions) and factory.ignores_options:
        log.debug("%s has no options %s, and ignores them", entry.name, ", ".join(unknown))
        options = {key: options[key] for key in options if key not in unknown}
    elif unknown:
        from difflib import get_close_matches  # noqa: PLC0415 - lazy: rare

        known = ", ".join(sorted(factory.options)) or "none"
        close = get_close_matches(unknown[0], factory.options, n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise InvalidArgument(
            f"Invalid provider_option key: {', '.join(unknown)} for {entry.name}. Known: "
            f"{known}{meant}"
        )
    forks.require_threads(entry.name)
    provider = factory.create(options)
    if not provider.survives_fork:
        forks.note_started(entry.name)
    return provider


def _scan(search_path: Sequence[str]) -> Iterator[ProviderEntry]:
    for folder in dict.fromkeys(filter(None, map(_absolute_path, search_path))):
        try:
            changed = os.stat(folder).st_mtime_ns  # noqa: PTH116 - see _entries_in
        except OSError:
            continue
        yield from _entries_in(folder, changed)


def _absolute_path(folder: str) -> str:
    """The absolute path; "" for a relative one in a working folder that was deleted."""
    try:
        return os.path.abspath(folder)  # noqa: PTH100 - see _entries_in
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=64)
def _entries_in(folder: str, changed: int) -> tuple[ProviderEntry, ...]:  # noqa: ARG001 - for the cache
    """The entries of the distributions in a folder, which installing one changes.

    Read once in a process: every session asks. Without pathlib, which takes twice as long.
    """
    entries: list[ProviderEntry] = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(DIST_INFO))  # noqa: PTH208 - see above
    except OSError:
        return ()  # a zip holds no distribution of ours
    for dist in names:
        try:
            with open(f"{folder}/{dist}/entry_points.txt", "rb") as file:  # noqa: PTH123 - see above
                content = file.read()
            text = content.decode() if GROUP.encode() in content else ""
        except (OSError, UnicodeDecodeError):
            continue  # no entry points, or ours are damaged
        if text:
            name, _, version = dist.removesuffix(DIST_INFO).rpartition("-")
            entries += _parse(text, name, version)
    return tuple(entries)


def _parse(text: str, distribution: str, version: str) -> Iterator[ProviderEntry]:
    """The lines of our group in an entry_points.txt (packaging specification)."""
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            yield ProviderEntry(name.strip(), target.split("[")[0].strip(), distribution, version)
