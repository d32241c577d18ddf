"""The execution providers of one session, from the ways in which a user can name them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite import forks
from ort_lite.ep.factory import SupportsEarlyLoading, SupportsThreadsOption
from ort_lite.providers import catalog
from ort_lite.session_log import INFO, get_logger
from ort_lite.status import EPFail, InvalidArgument, UnknownProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.ep.kernels import KernelDef
    from ort_lite.model.info import ModelMetadata
    from ort_lite.options import SessionOptions
    from ort_lite.status import OrtLiteError

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One EP that the session is to have.

    Attributes:
        explicit: Whether the user named it; one that the user did not is left out where it
            cannot be opened.
    """

    name: str
    options: Mapping[str, str]
    explicit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """Decision of a session about providers that are missing.

    Attributes:
        enabled: Whether it goes on without one that cannot be opened.
        providers: Its `providers`, as the user gave them.
        notes: One line for each that it goes on without, for `explain()`.
    """

    enabled: bool
    providers: object = None
    notes: list[str] = field(default_factory=list)


def read_requests(
    providers: str | Sequence[str | tuple[str, Mapping[str, str]]] | None,
    provider_options: Sequence[Mapping[str, str]] | None,
) -> list[ProviderRequest]:
    """Providers that the arguments of a session name, in their order.

    A name that is there twice counts once, which a UserWarning says. One string is the name of one
    provider: ONNX Runtime reads each of its characters as a name, and takes the CPU EP in the end.

    Raises:
        ValueError: An argument is not a sequence of the right things, or the two differ in length,
            as in ONNX Runtime's Python.
    """
    if providers is None:
        return []
    specs = [providers] if isinstance(providers, str) else providers
    if not isinstance(specs, Sequence):
        raise ValueError(f"'providers' should be a sequence, not {specs!r}.")  # noqa: TRY004 - ValueError is onnxruntime's class for it
    requests = [_request(spec) for spec in specs]
    if provider_options is not None:
        requests = _with_options(specs, requests, provider_options)
    return _each_once(requests)


def choose_requests(
    options: SessionOptions,
    named: Sequence[ProviderRequest],
    metadata: Callable[[], ModelMetadata],
) -> tuple[ProviderRequest, ...]:
    """All that a session of these arguments opens, with the options that it gives each.

    Args:
        options: Its policy or delegate, where it has one and no provider is named, adds to it
            the providers that it selects.
        named: From `read_requests`, what the session's own arguments name.
        metadata: Reads the model's, for a delegate.

    Raises:
        Fail: The delegate failed, or selected wrongly.
        InvalidArgument: As `add_defaults` and `with_threads`.
    """
    chosen = named or options.has_providers() or options.selects_by_runs
    if not chosen and options.selects_devices:
        from ort_lite.providers.device_policy import select_providers  # noqa: PLC0415 - lazy: rare

        policy, delegate = options.selection_policy, options.selection_delegate
        for name, provider_options in select_providers(policy, delegate, metadata):
            options.add_provider(name, provider_options)
    return with_threads(add_defaults(options, named), options.intra_op_num_threads)


def add_defaults(
    options: SessionOptions, named: Sequence[ProviderRequest]
) -> tuple[ProviderRequest, ...]:
    """Providers in the user's order, with the default EP appended when it is missing.

    Providers given to the session win over those added to its options, as in ONNX Runtime.

    Raises:
        InvalidArgument: `session.disable_cpu_ep_fallback` together with an explicit CPU EP.
    """
    requests = list(named)
    if requests and options.has_providers():
        from ort_lite.providers.warn_user import warn_user  # noqa: PLC0415 - lazy: rare

        warn_user(
            "Specified 'providers'/'provider_options' when creating InferenceSession but "
            "SessionOptions has providers, too. The session uses only those passed to "
            "InferenceSession()."
        )
    elif not requests:
        requests = [ProviderRequest(name, dict(o), explicit=True) for name, o in options.providers]
    if not requests:
        requests = [ProviderRequest(name, {}, explicit=False) for name in catalog.entries()]
    return _with_default(options, requests)


def _with_default(
    options: SessionOptions, requests: list[ProviderRequest]
) -> tuple[ProviderRequest, ...]:
    names = [request.name for request in requests]
    explicit_default = any(r.explicit and r.name == catalog.DEFAULT_PROVIDER for r in requests)
    if options.flag("session.disable_cpu_ep_fallback") and explicit_default:
        raise InvalidArgument(
            "Conflicting session configuration: explicitly added the CPU EP to the session, but "
            "also disabled fallback to the CPU EP via session configuration options."
        )
    if catalog.DEFAULT_PROVIDER not in names:
        requests = [*requests, ProviderRequest(catalog.DEFAULT_PROVIDER, {}, explicit=False)]
    return tuple(requests)


def with_shared_threads(options: SessionOptions) -> SessionOptions:
    """`options` with the numbers of threads of the process, where those are set.

    Raises:
        BindingError: They are, and the session wants its own, or the other way round.
    """
    if options.use_per_session_threads and "ort_lite.global_threads" not in sys.modules:
        return options  # no program has set any
    from ort_lite.global_threads import with_global_threads  # noqa: PLC0415 - lazy: rare

    return with_global_threads(options)


def with_threads(requests: Sequence[ProviderRequest], count: int) -> tuple[ProviderRequest, ...]:
    """`requests` with `SessionOptions.intra_op_num_threads` as an option of EPs that have one.

    An EP's own option for it, where the user gave it, wins; 0 changes nothing.

    Raises:
        InvalidArgument: A negative number.
    """
    if count < 0:
        raise InvalidArgument(f"intra_op_num_threads is {count}, expected 0 or more")
    if not count:
        return tuple(requests)
    installed = catalog.entries()
    threaded = []
    for request in requests:
        entry = installed.get(request.name)
        options = request.options
        if entry is not None and isinstance(factory := entry.load(), SupportsThreadsOption):
            options = {factory.threads_option: str(count), **options}
        threaded.append(ProviderRequest(request.name, options, request.explicit))
    return tuple(threaded)


def begin_all(requests: Sequence[ProviderRequest]) -> bool:
    """Let the EPs whose SDKs take long to load begin with it; what is wrong `open_all` says.

    Returns:
        Whether the process has the SDKs of all that would.
    """
    installed = catalog.entries()
    loaded: list[bool] = []
    for request in requests:
        if request.name in installed and not forks.is_lost(request.name):
            with suppress(EPFail):
                factory = installed[request.name].load()
                if isinstance(factory, SupportsEarlyLoading):
                    forks.note_started(request.name)
                    loaded.append(factory.begin(request.options))
    return bool(loaded) and all(loaded)


def open_all(
    requests: Sequence[ProviderRequest],
    *,
    fallback: Fallback | None = None,
    kernels: Sequence[KernelDef] = (),
    others: Sequence[ExecutionProvider] = (),
) -> list[ExecutionProvider]:
    """Open the requested EPs.

    Args:
        requests: From `add_defaults`.
        fallback: Decides whether to go on without an explicit EP that is not here; None never
            does.
        kernels: The user's, for each EP that runs such.
        others: Open already; the result is without them.

    Raises:
        UnknownProvider: A name that is not installed.
        InvalidArgument: An unknown option; kernels, and no EP runs such.
        EPFail: An explicit EP's SDK, driver or device is not there.
    """
    installed = catalog.entries()
    opened: list[ExecutionProvider] = []
    try:
        for at, request in enumerate(requests):
            try:
                entry = catalog.require_installed(request.name, installed)
                opened.append(catalog.open_provider(entry, request.options))
            except (UnknownProvider, EPFail) as exc:
                left = [
                    *(ep.name for ep in (*others, *opened)),
                    *(r.name for r in requests[at + 1 :]),
                ]
                if not left:
                    raise  # nothing would run the model
                if not request.explicit:
                    log.log(INFO, "%s is left out: %s", request.name, exc.message)
                elif fallback is None:
                    raise
                else:
                    _go_on_without(request.name, exc, left, fallback)
        _register(kernels, opened)
    except BaseException:
        for provider in opened:
            provider.release()
        raise
    return opened


def applied_options(
    requests: Sequence[ProviderRequest], names: Iterable[str]
) -> dict[str, dict[str, str]]:
    """By name of each EP in `names`, those of the requested options that it applies.

    Of several requests for one EP the last counts.
    """
    options_of = {request.name: request.options for request in requests}
    installed = catalog.entries()
    return {
        name: {key: value for key, value in options_of[name].items() if key in known}
        for name in names
        for known in [installed[name].load().options]
    }


def _go_on_without(name: str, error: OrtLiteError, left: Sequence[str], fallback: Fallback) -> None:
    """Note that the session goes on with the providers in `left`, or raise `error`."""
    from ort_lite.providers.fallback import report_missing  # noqa: PLC0415 - lazy: rare

    note = report_missing(name, error, left, enabled=fallback.enabled, requested=fallback.providers)
    if note is None:
        raise error
    fallback.notes.append(note)


def _register(kernels: Sequence[KernelDef], opened: Sequence[ExecutionProvider]) -> None:
    if not kernels:
        return
    from ort_lite.ep.kernels import SupportsKernels  # noqa: PLC0415 - lazy: reload

    takers = [provider for provider in opened if isinstance(provider, SupportsKernels)]
    if not takers:
        raise InvalidArgument("custom kernels are registered, and no execution provider runs them")
    for provider in takers:
        for definition in kernels:
            provider.register_kernel(definition)


def _with_options(
    specs: Sequence[object], requests: Sequence[ProviderRequest], provider_options: object
) -> list[ProviderRequest]:
    if not isinstance(provider_options, Sequence):
        raise ValueError(f"'provider_options' should be a sequence, not {provider_options!r}.")  # noqa: TRY004 - as above
    if len(provider_options) != len(requests):
        raise ValueError(
            "'providers' and 'provider_options' should be the same length if both are given. "
            f"They have {len(requests)} and {len(provider_options)}."
        )
    if not all(isinstance(spec, str) for spec in specs):
        raise ValueError(
            "Only string values for 'providers' are supported if 'provider_options' is given."
        )
    if not all(isinstance(options, Mapping) for options in provider_options):
        raise ValueError(f"'provider_options' values must be dicts, not {provider_options!r}.")
    return [
        ProviderRequest(request.name, _texts(request.name, options), explicit=True)
        for request, options in zip(requests, provider_options, strict=True)
    ]


def _each_once(requests: Sequence[ProviderRequest]) -> list[ProviderRequest]:
    first: dict[str, ProviderRequest] = {}
    for request in requests:
        if request.name in first:
            from ort_lite.providers.warn_user import warn_user  # noqa: PLC0415 - lazy: rare

            warn_user(f"Duplicate provider '{request.name}' encountered, ignoring.")
        first.setdefault(request.name, request)
    return list(first.values())


def _request(spec: object) -> ProviderRequest:
    match spec:
        case str():
            return ProviderRequest(spec, {}, explicit=True)
        case (str() as name, Mapping() as options):
            return ProviderRequest(name, _texts(name, options), explicit=True)
    raise ValueError(
        f"'providers' values must be either strings or (string, dict) tuples, not {spec!r}."
    )


def _texts(provider: str, options: Mapping[str, object]) -> dict[str, str]:
    """Option values as text, as onnxruntime's binding makes them; objects of pyopencl by handle.

    Raises:
        InvalidArgument: An object of pyopencl that the option does not accept.
    """
    return {
        str(key): catalog.read_handle(provider, str(key), value)
        if hasattr(value, "int_ptr")
        else str(value)
        for key, value in options.items()
    }
