"""Models in the ORT format: damaged, then decoded and run without a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostile.byte_mutations import INTERESTING, mutated
from hostile.fuzz_target import Finding, Outcome, Target
from ort_models import mixed, save_by_onnxruntime
from small_models import branching, feed, mlp

import ort_lite
from ctx_formats.errors import FormatError
from ctx_formats.ort_model_reader import read_ort_model

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random


class OrtModelTarget(Target):
    """Bytes, offsets of tables and vectors, lengths and types of files that onnxruntime saved."""

    name = "ort_model"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        protos = [(proto, feed(proto)) for proto in (mlp(), branching())]
        self.bases = [(save_by_onnxruntime(proto), fed) for proto, fed in (*protos, mixed())]
        self.options = ort_lite.SessionOptions()
        self.options.add_session_config_entry("session.load_model_format", "ORT")

    def run(self, random: Random) -> Outcome:
        base, fed = random.choice(self.bases)
        self.last = _damage(base, random)
        if self.last == base:
            return Outcome("unchanged")
        try:
            read_ort_model(memoryview(self.last))
        except FormatError as exc:
            if len(str(exc)) > len(self.last) + 1000:
                raise Finding(f"a message of {len(str(exc))} characters") from exc
            refused = True
        else:
            refused = False
        try:
            with ort_lite.InferenceSession(
                self.last, self.options, providers=["CPUExecutionProvider"]
            ) as session:
                if refused:
                    raise Finding("a session reads what the reader refuses")
                session.run(None, fed)
        except ort_lite.OrtLiteError:
            return Outcome("refused", "read" if not refused else "")
        except ValueError as exc:  # onnxruntime's class for a feed that does not fit the model
            if "missing from input feed" not in str(exc):
                raise
            return Outcome("another model", "inputs")
        return Outcome("right", "ran")


def _damage(data: bytes, random: Random) -> bytes:
    if random.random() < 0.5:
        return mutated(data, [(0, len(data))], random)
    changed = bytearray(data)
    words = len(data) // 4
    for _ in range(random.choice((1, 2, 20))):
        at, other = (4 * random.randrange(words) for _ in range(2))
        value = int.from_bytes(data[other : other + 4], "little")
        value = random.choice((value, value + 4, other - at, max(len(data) - at, 0), *INTERESTING))
        changed[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes(changed)
