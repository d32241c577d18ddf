"""A trial of one payload in a child process, and how the child ended."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.container import payload_digest
from ctx_formats.container_writer import write_container
from ctx_formats.ep_context import DOMAIN, EpContextNode
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import GraphDef, Model
from ctx_formats.temporary_files import temporary_folder
from ort_lite.child_module import describe_exit, flatten_text, run_module
from ort_lite.context.keys import PROBE_KEY
from ort_lite.status import Fail
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.identity import HardwareIdentity
    from ctx_formats.notes import ContextNotes
    from ort_lite.ep.interface import PartitionIo
    from ort_lite.model.loader import LoadedModel

MODEL, PAYLOAD, REQUEST = "probe.onnx", "payload.bin", "request.json"
_MAX_SHOWN = 300
"""Characters of the child's error output that a message quotes, from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A payload that passed every check of ours.

    Attributes:
        present: Device and SDK that would load it.
        options: Provider options of the session.
        believed: Whether its maker is known, by more than what anybody can compute.
        loaded: The context model, for the command of a hint.
    """

    node: EpContextNode
    payload: memoryview
    notes: ContextNotes | None
    io: PartitionIo
    present: HardwareIdentity
    options: Mapping[str, str]
    believed: bool
    loaded: LoadedModel

    def key(self) -> str:
        """Key of a remembered verdict: payload, EP, options, device, driver and SDK."""
        digest = self.notes.payload_blake3 if self.notes else payload_digest(self.payload)
        parts = [digest, self.node.source, self.present.to_mapping(), sorted(self.options.items())]
        return blake3(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def is_from_here(self) -> bool:
        """Whether a trusted maker made it for exactly this device and SDK build."""
        return self.believed and self.notes is not None and self.notes.identity == self.present


def came_down(suspect: Suspect, limit: float) -> str:
    """Import the payload and run it once in a child; how the child failed, or ""."""
    with temporary_folder("ort_lite_probe_") as place:
        folder = Path(place)
        _lay_out(suspect, folder)
        try:
            done = run_module("ort_lite.probing.child", place, limit=limit)
        except subprocess.TimeoutExpired:
            return f"did not finish within {limit:.0f} seconds"
        except OSError as exc:
            raise Fail(f"{PROBE_KEY}: {sys.executable} cannot be started: {exc}") from exc
    if not done.returncode:
        return ""
    return f"{describe_exit(done.returncode)}: {_last_words(done.stderr)}"


def _lay_out(suspect: Suspect, folder: Path) -> None:
    """A model of one node with the payload next to it, for a session in the child."""
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


def _last_words(stderr: bytes) -> str:
    """The end of the child's error output, on one line."""
    return flatten_text(stderr.decode(errors="replace"))[-_MAX_SHOWN:] or "without a message"
