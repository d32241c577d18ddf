"""Command-line options that choose a session."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.compile_progress import compile_progress
from ort_lite.cli.completion import complete_entry, complete_provider
from ort_lite.cli.device_choice import device_option, no_device_error, with_device
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import print_note
from ort_lite.providers.device_policy import POLICY_NAMES, find_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ort_lite.context.shared_contexts import SharedContexts
    from ort_lite.options import SessionOptions
    from ort_lite.session import InferenceSession
    from ort_lite.status import EPFail

log = logging.getLogger(__name__)

SUFFIX = "ExecutionProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChoice:
    """The session that a command is to create.

    Attributes:
        providers: Names with options, in order of preference; None for all installed ones.
        config: Session configuration entries.
        dimensions: Sizes of symbolic dimensions.
        group: The session group to join.
        policy: One of POLICY_NAMES, by which devices are chosen if no provider is named; "" for
            none.
    """

    providers: tuple[tuple[str, Mapping[str, str]], ...] | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    dimensions: Mapping[str, int] = field(default_factory=dict)
    group: SharedContexts | None = None
    policy: str = ""

    def session_options(self, extra: Mapping[str, str] | None = None) -> SessionOptions:
        """The chosen session options, with `extra` configuration entries."""
        from ort_lite.options import SessionOptions

        options = SessionOptions()
        for key, value in {**self.config, **(extra or {})}.items():
            options.add_session_config_entry(key, value)
        for name, size in self.dimensions.items():
            options.add_free_dimension_override_by_name(name, size)
        if self.policy:
            options.set_provider_selection_policy(find_policy(self.policy))
        return self.group.join(options) if self.group is not None else options

    def compile_key(self) -> str:
        """Text of everything here that decides how long a compile takes."""
        providers = [(name, dict(options)) for name, options in self.providers or ()]
        return json.dumps([providers, self.policy, dict(self.dimensions)], sort_keys=True)


def session_choice(command: Callable[..., ExitCode]) -> Callable[..., ExitCode]:
    """Give a command -e, -O, --device, -c, --dim and --policy, as its argument `choice`."""

    @click.option(
        *("-e", "--ep", "eps"), multiple=True, metavar="EP", shell_complete=complete_provider,
        help="Execution provider: openvino, opencl, cpu, or a full name. Repeat it in order of "
        "preference. Default: all installed ones.",
    )  # fmt: skip
    @click.option(
        *("-O", "--ep-option", "ep_options"), multiple=True, metavar="[EP.]KEY=VALUE",
        help="Execution-provider option, for example device_type=NPU.",
    )  # fmt: skip
    @device_option("Device to run on. OpenVINO is preferred; a GPU that it lacks runs on OpenCL.")
    @click.option(
        *("-c", "--config", "config"), multiple=True, metavar="KEY=VALUE",
        shell_complete=complete_entry,
        help="Session configuration entry, for example session.disable_cpu_ep_fallback=1.",
    )  # fmt: skip
    @click.option(
        "--dim", "dims", multiple=True, metavar="NAME=SIZE",
        help="Size of a symbolic dimension of the model.",
    )  # fmt: skip
    @click.option(
        "--policy", type=click.Choice(POLICY_NAMES, case_sensitive=False), metavar="POLICY",
        help="Choose execution providers by their devices, or by measuring runs (FASTEST), if no "
        "--ep is given: " + ", ".join(POLICY_NAMES) + ".",
    )  # fmt: skip
    @wraps(command)
    def wrapper(
        *args: Any,  # noqa: ANN401 - click's
        eps: Sequence[str],
        ep_options: Sequence[str],
        device: str,
        config: Sequence[str],
        dims: Sequence[str],
        policy: str | None,
        **kwargs: Any,  # noqa: ANN401 - click's
    ) -> ExitCode:
        if device and policy:
            raise click.UsageError("--device and --policy cannot be combined")
        choice = SessionChoice(
            providers=with_device(
                _parse_providers(eps or _choose_implied(device, kwargs), ep_options), device
            ),
            config=dict(key_value(text, "--config") for text in config),
            dimensions=dict(parse_dimension(text) for text in dims),
            policy=policy or "",
        )
        return command(*args, choice=choice, **kwargs)

    return wrapper


def _choose_implied(device: str, others: Mapping[str, Any]) -> tuple[str, ...]:
    """The execution provider whose options -O gives where -e is left out.

    OpenVINO has the NPUs, and OpenCL compiles for single shapes.
    """
    if device.lower().startswith("npu") or others.get("platforms"):
        return ("openvino",)
    return ("opencl",) if others.get("shape_sets") else ()


def key_value(text: str, option: str, form: str = "KEY=VALUE") -> tuple[str, str]:
    """Split `KEY=VALUE` into key and value.

    Raises:
        UsageError: It is not of that form, which the message calls `form`.
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise click.UsageError(f"{option} {text}: expected {form}")
    return key, value


def full_name(ep: str) -> str:
    """Full name of the installed execution provider `ep`; `ep` itself if none matches.

    Raises:
        UsageError: It is the name of a kind of device, or nearly that of a provider.
    """
    from ort_lite.providers.catalog import entries

    short = {name.removesuffix(SUFFIX).lower(): name for name in entries()}
    for key, name in short.items():
        if ep.lower() in (name.lower(), key):
            return name
    close = get_close_matches(ep.lower().removesuffix(SUFFIX.lower()), short, n=1, cutoff=0.75)
    if close:
        raise click.UsageError(
            f"-e {ep}: unknown execution provider; did you mean {close[0]}? Installed: "
            f"{', '.join(short)}"
        )
    if ep.lower() in ("gpu", "npu"):
        raise click.UsageError(
            f"-e {ep}: {ep} is a device, not an execution provider; use --device {ep.lower()}"
        )
    return ep


def open_session(
    model: Path, choice: SessionChoice, extra: Mapping[str, str] | None = None
) -> InferenceSession:
    """Create the chosen session.

    Raises:
        CommandError: NO_HARDWARE; a requested execution provider has no device here.
        OrtLiteError: Anything else that a session refuses.
    """
    from ort_lite.session import InferenceSession
    from ort_lite.status import EPFail

    options = choice.session_options(extra)
    try:
        with compile_progress(f"loading {model.name}", choice.compile_key()) as update:
            options.set_progress_func(update)
            _require_named(choice)
            session = InferenceSession(
                model, options, providers=choice.providers, enable_fallback=0
            )
    except EPFail as exc:
        if _open_devices(options, choice) is None:
            raise
        raise _no_hardware(exc, choice) from exc
    _report_session(session, model, options, choice)
    return session


def _report_session(
    session: InferenceSession, model: Path, options: SessionOptions, choice: SessionChoice
) -> None:
    """Report on stderr what the user should know of a new session."""
    for line in str(session.load_report()).splitlines():
        log.info("%s: %s", model.name, line.strip())
    if any(options for _, options in choice.providers or ()):
        from ort_lite.cli.ignored_settings import note_ignored_options

        note_ignored_options(choice.providers or ())
    if choice.config or choice.dimensions:
        from ort_lite.cli.ignored_settings import report_ignored_settings

        report_ignored_settings(model, options, choice.config, choice.dimensions)
    kind = choice.policy.removeprefix("PREFER_")
    if kind != choice.policy:
        _note_missing_kind(session, kind)


def _note_missing_kind(session: InferenceSession, kind: str) -> None:
    used = {part.identity.get("device", "")[:3] for part in session.explain().partitions}
    if kind not in used:
        print_note(
            f"note: nothing runs on the preferred {kind}; run ort-lite devices to list devices"
        )


def _require_named(choice: SessionChoice) -> None:
    """Check that the named execution providers are installed; a session would skip them.

    Raises:
        UnknownProvider: No execution provider of that name is installed.
        EPFail: Its SDK or driver is not installed.
    """
    from ort_lite.providers.catalog import require_present

    for name, _ in choice.providers or ():
        require_present(name)


def require_devices(choice: SessionChoice) -> None:
    """Check that the chosen devices are present, for a command that has yet another reason to end.

    Raises:
        CommandError: NO_HARDWARE; a requested execution provider has no device here.
        OrtLiteError: An option has a value that its execution provider refuses.
    """
    from ort_lite.status import EPFail

    try:
        _require_named(choice)
    except EPFail as exc:
        raise _no_hardware(exc, choice) from exc
    problem = _open_devices(choice.session_options(), choice)
    if problem is not None:
        raise _no_hardware(problem, choice) from problem


def _no_hardware(exc: EPFail, choice: SessionChoice) -> CommandError:
    if any("npu_platform" in options for _, options in choice.providers or ()):
        return CommandError(ExitCode.NO_HARDWARE, exc.message)
    return no_device_error(exc)


def _open_devices(options: SessionOptions, choice: SessionChoice) -> EPFail | None:
    """Open and release the devices; the error if one cannot be opened, None if all can."""
    from ort_lite.providers.provider_list import add_defaults, open_all, read_requests
    from ort_lite.status import EPFail

    try:
        opened = open_all(add_defaults(options, read_requests(choice.providers, None)))
    except EPFail as exc:
        return exc
    for ep in opened:
        ep.release()
    return None


def parse_dimension(text: str) -> tuple[str, int]:
    """Name and size of `NAME=SIZE`.

    Raises:
        UsageError: It is something else.
    """
    name, value = key_value(text, "--dim", "NAME=SIZE")
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise click.UsageError(f"--dim {text}: expected a size of at least 1")
    return name, int(value)


def _parse_providers(
    eps: Sequence[str], texts: Sequence[str]
) -> tuple[tuple[str, Mapping[str, str]], ...] | None:
    names = [full_name(ep) for ep in eps]
    options: dict[str, dict[str, str]] = {name: {} for name in names}
    for text in texts:
        key, value = key_value(text, "--ep-option")
        owner, dot, rest = key.partition(".")
        if dot and full_name(owner) in options:
            options[full_name(owner)][rest] = value
        elif len(names) == 1:
            options[names[0]][key] = value
        else:
            raise click.UsageError(
                f"--ep-option {text}: which execution provider is it for? Use "
                f"-e openvino -O {text} or -e openvino -e cpu -O openvino.{text}"
            )
    return tuple(options.items()) or None
