"""Payloads tried in a child process first: what brings it down never reaches this one.

Vendors' loaders are not hardened. `session.ep_context_probe` says which payloads are tried:
`never` (default) none; `auto` those that this machine has not seen; `always` all. One that
crashed or hung is remembered, and refused without another try unless it is `always`. A seal and
a digest let nothing through: anybody can compute them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import write_file
from ctx_formats.errors import Reason
from ort_lite.context.hints import recompile_hint
from ort_lite.context.keys import PROBE_KEY
from ort_lite.model_cache.ownership import writable_by_others
from ort_lite.model_cache.settings import cache_settings
from ort_lite.options import TRUST_KEY
from ort_lite.probing.trial import Suspect, came_down
from ort_lite.status import Fail, InvalidArgument, InvalidGraph
from ort_lite.status import NotImplemented as NotImplementedYet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ctx_formats.ep_context import EpContextNode
    from ort_lite.context.payload_checks import CheckedNode
    from ort_lite.context.reload import Probe
    from ort_lite.ep.interface import ExecutionProvider, PartitionIo
    from ort_lite.options import SessionOptions

FORMAT = 1
"""Of a verdict that is kept; one of another format is not known of, and the payload tried."""
LIMIT_KEY = "session.ep_context_probe_seconds"
DEFAULT_LIMIT = "60"


class ProbeMode(StrEnum):
    """Values of `session.ep_context_probe`."""

    NEVER = "never"
    AUTO = "auto"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Prober:
    """Tries payloads, and remembers how that went.

    Attributes:
        folder: Where verdicts are kept, a file each.
        limit: Seconds that a child may take.
    """

    mode: ProbeMode
    folder: Path
    limit: float

    def judge(self, suspect: Suspect) -> None:
        """Let a payload through, or not.

        Raises:
            InvalidGraph: Reason vendor_crashed; it crashed or hung, now or earlier.
            Fail: No child process can be started here.
        """
        record = self.folder / f"{suspect.key()}.json"
        known = _read_verdict(record)
        if self.mode is ProbeMode.AUTO:
            if known is not None and known:
                raise _crash_error(suspect, f"{known} (remembered in {record})")
            if known is not None and not writable_by_others(self.folder):
                return
            if suspect.is_from_here():
                return
        problem = came_down(suspect, self.limit)
        _write_verdict(record, problem)
        if problem:
            raise _crash_error(suspect, problem)


def probe_of(
    options: SessionOptions,
    eps: Sequence[ExecutionProvider],
    provider_options: Mapping[str, Mapping[str, str]],
    *,
    believed: bool,
) -> Probe | None:
    """The function that tries payloads, if a session's options request it.

    Args:
        options: The session's.
        eps: The session's.
        provider_options: What each was opened with.
        believed: Whether the model is signed with a trusted key, or of a model cache that only
            this user can write to.

    Raises:
        InvalidArgument: An entry has a value that it cannot have.
    """
    prober = prober_of(options, os.environ)
    if prober is None:
        return None
    opened = {ep.name: ep for ep in eps}

    def probe(node: EpContextNode, checked: CheckedNode, io: PartitionIo) -> None:
        suspect = Suspect(
            node=node,
            payload=checked.payload.data,
            notes=checked.notes,
            io=io,
            present=opened[node.source].identity,
            options=provider_options[node.source],
            believed=believed,
            loaded=checked.loaded,
        )
        if checked.payload.weights is None:
            prober.judge(suspect)
        elif prober.mode is not ProbeMode.AUTO or not suspect.is_from_here():
            raise NotImplementedYet(
                f"{PROBE_KEY} cannot try payloads whose weights are shared (EPContext node "
                f"'{node.name}'); set it to never, or to auto with a model whose signer "
                f"{TRUST_KEY} names"
            )

    return probe


def prober_of(options: SessionOptions, environment: Mapping[str, str]) -> Prober | None:
    """The prober that a session's entries request; None for `never`.

    Raises:
        InvalidArgument: An entry has a value that it cannot have.
    """
    value = options.config.get(PROBE_KEY, ProbeMode.NEVER)
    if value not in list(ProbeMode):
        raise InvalidArgument(f"{PROBE_KEY} is '{value}', expected {', '.join(ProbeMode)}")
    if value == ProbeMode.NEVER:
        return None
    text = options.config.get(LIMIT_KEY, DEFAULT_LIMIT)
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidArgument(f"{LIMIT_KEY} is '{text}', expected whole seconds, at least 1")
    folder = cache_settings(options.config, environment).folder / "probes"
    return Prober(ProbeMode(value), folder, float(text))


def _read_verdict(record: Path) -> str | None:
    """Read how a payload crashed; "" where it did not, None if no record exists."""
    try:
        recorded = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(recorded, dict) or recorded.get("ort_lite_probe") != FORMAT:
        return None
    problem = recorded.get("problem")
    return problem if isinstance(problem, str) else None


def _write_verdict(record: Path, problem: str) -> None:
    """Keep a verdict.

    Raises:
        Fail: The folder cannot be written to: every load would try the payload again.
    """
    content = json.dumps({"ort_lite_probe": FORMAT, "problem": problem})
    try:
        record.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the model cache's
        record.parent.mkdir(mode=0o700, exist_ok=True)
        write_file(record, content.encode(), replace=True)
    except OSError as exc:
        raise Fail(
            f"{PROBE_KEY}: the verdict cannot be kept in {record.parent}: {exc}. Name another "
            "folder in session.ep_context_cache_dir"
        ) from exc


def _crash_error(suspect: Suspect, problem: str) -> InvalidGraph:
    hint = recompile_hint(suspect.loaded, suspect.node.onnx_model_filename)
    return InvalidGraph(
        f"EPContext node '{suspect.node.name}': a child process that imported the payload "
        f"{problem} (reason: {Reason.VENDOR_CRASHED}). To fix this: {hint}",
        reason=Reason.VENDOR_CRASHED,
        recorded=suspect.notes.identity if suspect.notes else None,
        present=suspect.present,
        hint=hint,
    )
