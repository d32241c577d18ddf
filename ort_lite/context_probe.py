"""Payloads tried in a child process first: what brings it down never reaches this one.

Vendors' loaders are not hardened. `session.ep_context_probe` says which payloads are tried:
`never` (default) none; `auto` those that this machine has not seen; `always` all. One that
crashed or hung is remembered, and refused without another try unless it is `always`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.atomic_write import write_file
from ctx_formats.container import payload_digest
from ctx_formats.container_writer import write_container
from ctx_formats.ep_context import DOMAIN, EpContextNode
from ctx_formats.errors import Reason
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import GraphDef, Model
from ort_lite.model_cache.settings import cache_settings
from ort_lite.opening import PROBE_KEY
from ort_lite.status import Fail, InvalidArgument, InvalidGraph
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.identity import HardwareIdentity
    from ctx_formats.notes import ContextNotes
    from ort_lite.execution_provider import PartitionIo
    from ort_lite.options import SessionOptions

LIMIT_KEY = "session.ep_context_probe_seconds"
DEFAULT_LIMIT = "60"
MODEL, PAYLOAD, REQUEST = "probe.onnx", "payload.bin", "request.json"
_TOLD = 300
"""Characters of what the child said last."""


class ProbeMode(StrEnum):
    """Values of `session.ep_context_probe`."""

    NEVER = "never"
    AUTO = "auto"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A payload that passed every check of ours.

    Attributes:
        present: Device and SDK that would load it.
        options: Provider options of the session.
    """

    node: EpContextNode
    payload: memoryview
    notes: ContextNotes | None
    io: PartitionIo
    present: HardwareIdentity
    options: Mapping[str, str]

    def key(self) -> str:
        """What a verdict is remembered under: payload, EP, options, device, driver and SDK."""
        digest = self.notes.payload_blake3 if self.notes else payload_digest(self.payload)
        parts = [digest, self.node.source, self.present.to_mapping(), sorted(self.options.items())]
        return blake3(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def made_here(self) -> bool:
        """Whether its sealed notes have its digest, and exactly this device and SDK build."""
        return self.notes is not None and self.notes.identity == self.present


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
        known = _remembered(record)
        if self.mode is ProbeMode.AUTO:
            if known is not None and known:
                raise _crashed(suspect, f"{known} (remembered in {record})")
            if known is not None:
                return
        if self.mode is ProbeMode.AUTO and suspect.made_here():
            problem = ""
        else:
            problem = _tried(suspect, self.limit)
        _remember(record, problem)
        if problem:
            raise _crashed(suspect, problem)


def prober_of(options: SessionOptions, environment: Mapping[str, str]) -> Prober | None:
    """What a session's entries ask for; None for `never`.

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


def _tried(suspect: Suspect, limit: float) -> str:
    """Import the payload and run it once in a child; how it came down, or ""."""
    with tempfile.TemporaryDirectory(prefix="ort_lite_probe_") as place:
        folder = Path(place)
        _lay_out(suspect, folder)
        command = [sys.executable, "-m", "ort_lite.probe_child", place]
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not come back within {limit:.0f} seconds"
        except OSError as exc:
            raise Fail(f"{PROBE_KEY}: {sys.executable} cannot be started: {exc}") from exc
    if not done.returncode:
        return ""
    return f"{_ending(done.returncode)}: {_last_words(done.stderr)}"


def _lay_out(suspect: Suspect, folder: Path) -> None:
    """A model of one node with the payload beside it, for a session in the child."""
    node = suspect.node
    name = node.partition_name or node.name
    with (folder / PAYLOAD).open("w+b") as file:
        write_container(file, [(name, lambda out: _copy(suspect.payload, out))], PRODUCER)
    alone = replace(
        node,
        main_context=True,
        embed_mode=False,
        ep_cache_context=PAYLOAD.encode(),
        notes="",
        partition_name=name,
    )
    graph = GraphDef(
        name="probe",
        nodes=(alone.to_node(),),
        inputs=tuple({info.name: info for info in suspect.io.inputs}.values()),
        outputs=suspect.io.outputs,
    )
    model = Model(graph=graph, ir_version=10, opset_imports={"": 17, DOMAIN: 1})
    (folder / MODEL).write_bytes(model_bytes(model))
    request = {"source": node.source, "options": dict(suspect.options)}
    (folder / REQUEST).write_text(json.dumps(request), encoding="utf-8")


def _copy(payload: memoryview, out: object) -> None:
    out.write(payload)  # type: ignore[attr-defined] # a BinaryIO


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"


def _last_words(stderr: bytes) -> str:
    """The end of what was said, on one line: a vendor's text may hold anything."""
    text = " ".join(stderr.decode(errors="replace").split())
    shown = "".join(c if c.isprintable() else "?" for c in text[-_TOLD:])
    return shown or "without a word"


def _remembered(record: Path) -> str | None:
    """How a payload came down, "" where it did not, None where nothing is known."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    problem = found.get("problem") if isinstance(found, dict) else None
    return problem if isinstance(problem, str) else None


def _remember(record: Path, problem: str) -> None:
    """Keep a verdict.

    Raises:
        Fail: The folder cannot be written to: every load would try the payload again.
    """
    content = json.dumps({"ort_lite_probe": 1, "problem": problem})
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        write_file(record, content.encode(), replace=True)
    except OSError as exc:
        raise Fail(
            f"{PROBE_KEY}: the verdict cannot be kept in {record.parent}: {exc}. Name another "
            "folder in session.ep_context_cache_dir"
        ) from exc


def _crashed(suspect: Suspect, problem: str) -> InvalidGraph:
    hint = "compile the model again on this machine: ort-lite compile MODEL"
    return InvalidGraph(
        f"EPContext node '{suspect.node.name}': a child process that imported the payload "
        f"{problem} (reason: {Reason.VENDOR_CRASHED}). To mend it: {hint}.",
        reason=Reason.VENDOR_CRASHED,
        recorded=suspect.notes.identity if suspect.notes else None,
        present=suspect.present,
        hint=hint,
    )
