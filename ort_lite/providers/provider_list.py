"""The execution providers of one session, from the ways in which a user can name them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite import forks
from ort_lite.providers import catalog
from ort_lite.session_log import INFO, WARNING, get_logger
from ort_lite.status import EPFail, InvalidArgument, UnknownProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ort_lite.execution_provider import ExecutionProvider
    from ort_lite.kernel_registry import KernelDef
    from ort_lite.model.info import ModelMetadata
    from ort_lite.options import SessionOptions

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """One EP that the session is to have.

    Attributes:
        explicit: Whether the user named it; an explicit one that cannot be opened is an error.
    """

    name: str
    options: Mapping[str, str]
    explicit: bool


def wanted_by(
    options: SessionOptions,
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
    provider_options: Sequence[Mapping[str, str]] | None,
    metadata: Callable[[], ModelMetadata],
) -> tuple[Request, ...]:
    """All that a session of these arguments opens, with the options that it gives each.

    Args:
        options: Its policy or delegate, where it has one and no provider is named, adds to it
            the providers that it selects.
        providers: As for a session.
        provider_options: As for a session.
        metadata: Reads the model's, for a delegate.

    Raises:
        Fail: The delegate failed, or selected wrongly.
        ValueError: As `requested`.
        InvalidArgument: As `requested` and `with_threads`.
    """
    if not providers and options.selects_devices:
        from ort_lite.providers.device_policy import add_providers  # noqa: PLC0415 - few sessions ask

        add_providers(options, metadata)
    found = requested(options, providers, provider_options)
    return with_threads(found, options.intra_op_num_threads)


def requested(
    options: SessionOptions,
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
    provider_options: Sequence[Mapping[str, str]] | None,
) -> tuple[Request, ...]:
    """Providers in the user's order, with the default EP appended when it is missing.

    Providers given to the session win over those added to its options, as in ONNX Runtime.

    Raises:
        ValueError: As `named_in`.
        InvalidArgument: `session.disable_cpu_ep_fallback` together with an explicit CPU EP.
    """
    found = named_in(providers, provider_options)
    if found and options.has_providers():
        log.warning("the providers given to the session win over those added to its SessionOptions")
    elif not found:
        found = [Request(name, dict(o), explicit=True) for name, o in options.providers]
    if not found:
        found = [Request(name, {}, explicit=False) for name in catalog.entries()]
    return _with_default(options, found)


def named_in(
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
    provider_options: Sequence[Mapping[str, str]] | None,
) -> list[Request]:
    """Providers that the arguments of a session name, in their order.

    Raises:
        ValueError: `providers` is one string, or the lists differ in length; ONNX Runtime's
            Python raises the same class.
    """
    if isinstance(providers, str):
        raise ValueError(f"providers must be a sequence of names, not the string {providers!r}")  # noqa: TRY004 - ValueError is onnxruntime's class for it
    specs = list(providers or ())
    if provider_options is not None and len(provider_options) != len(specs):
        raise ValueError(
            "'providers' and 'provider_options' should be the same length if both are given: "
            f"{len(specs)} and {len(provider_options)}"
        )
    found = [_request(spec) for spec in specs]
    if provider_options is not None:
        found = [
            Request(r.name, {**r.options, **_texts(o)}, explicit=True)
            for r, o in zip(found, provider_options, strict=True)
        ]
    return found


def _with_default(options: SessionOptions, found: list[Request]) -> tuple[Request, ...]:
    names = [request.name for request in found]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise InvalidArgument(f"providers named twice: {sorted(doubled)}")
    explicit_default = any(r.explicit and r.name == catalog.DEFAULT_PROVIDER for r in found)
    if options.flag("session.disable_cpu_ep_fallback") and explicit_default:
        raise InvalidArgument(
            "Conflicting session configuration: explicitly added the CPU EP to the session, but "
            "also disabled fallback to the CPU EP via session configuration options."
        )
    if catalog.DEFAULT_PROVIDER not in names:
        found = [*found, Request(catalog.DEFAULT_PROVIDER, {}, explicit=False)]
    return tuple(found)


def with_threads(requests: Sequence[Request], count: int) -> tuple[Request, ...]:
    """`requests` with `SessionOptions.intra_op_num_threads` handed to EPs that can heed it.

    An EP's own option for it, where the user gave it, wins; 0 changes nothing.

    Raises:
        InvalidArgument: A negative number.
    """
    if count < 0:
        raise InvalidArgument(f"intra_op_num_threads is {count}, expected 0 or more")
    if not count:
        return tuple(requests)
    installed = catalog.entries()
    found = []
    for request in requests:
        entry = installed.get(request.name)
        key = getattr(entry.load(), "threads_option", "") if entry is not None else ""
        options = {key: str(count), **request.options} if key else request.options
        found.append(Request(request.name, options, request.explicit))
    return tuple(found)


def begin_all(requests: Sequence[Request]) -> bool:
    """Let the EPs whose SDKs take long to load begin with it; what is wrong `open_all` says.

    Returns:
        Whether the process has the SDKs of all that would.
    """
    installed = catalog.entries()
    loaded: list[bool] = []
    for request in requests:
        if request.name in installed and not forks.is_lost(request.name):
            with suppress(EPFail):
                begin = getattr(installed[request.name].load(), "begin", None)
                if begin is not None:
                    forks.note_started(request.name)
                    loaded.append(bool(begin(request.options)))
    return bool(loaded) and all(loaded)


def open_all(
    requests: Sequence[Request], *, fallback: bool, kernels: Sequence[KernelDef] = ()
) -> list[ExecutionProvider]:
    """Open the requested EPs.

    Args:
        requests: From `requested`.
        fallback: Whether an explicit EP that cannot be opened is left out with a warning
            (`enable_fallback=1`, which the user must ask for).
        kernels: The user's, for each EP that runs such.

    Raises:
        UnknownProvider: A name that is not installed.
        InvalidArgument: An unknown option; kernels, and no EP runs such.
        EPFail: An explicit EP's SDK, driver or device is not there.
    """
    installed = catalog.entries()
    opened: list[ExecutionProvider] = []
    for request in requests:
        try:
            entry = catalog.require_installed(request.name, installed)
            opened.append(catalog.open_provider(entry, request.options))
        except UnknownProvider as exc:
            if not fallback:
                _close(opened)
                raise
            log.warning("%s Going on without it.", exc.message)
        except EPFail as exc:
            if request.explicit and not fallback:
                _close(opened)
                raise
            level = WARNING if request.explicit else INFO
            log.log(level, "%s is left out: %s", request.name, exc.message)
        except InvalidArgument:
            _close(opened)
            raise
    if kernels:
        _register(kernels, opened)
    return opened


def _register(kernels: Sequence[KernelDef], opened: Sequence[ExecutionProvider]) -> None:
    from ort_lite.kernel_registry import SupportsKernels  # noqa: PLC0415 - few sessions have any

    takers = [provider for provider in opened if isinstance(provider, SupportsKernels)]
    if not takers:
        _close(opened)
        raise InvalidArgument("custom kernels are registered, and no execution provider runs them")
    for provider in takers:
        for definition in kernels:
            provider.register_kernel(definition)


def _close(opened: Sequence[ExecutionProvider]) -> None:
    for provider in opened:
        provider.release()


def _request(spec: object) -> Request:
    match spec:
        case str():
            return Request(spec, {}, explicit=True)
        case (str() as name, Mapping() as options):
            return Request(name, _texts(options), explicit=True)
    raise ValueError(f"a provider is a name or a pair (name, options), not {spec!r}")


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    """Option values as text, as onnxruntime's binding makes them."""
    return {str(key): str(value) for key, value in options.items()}
