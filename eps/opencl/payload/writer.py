"""Writes payloads in the form that format.py reads, also with programs for more shapes."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import Reason
from ctx_formats.lean_dataclass import replace
from eps.opencl.payload.format import (
    ALIGNMENT,
    HEAD,
    IN_POOL,
    IN_SHARED_FILE,
    MAGIC,
    VERSION,
    WITHOUT_PARTS,
)
from eps.opencl.payload.table import encode_spec
from eps.opencl.tuning.rows import rows_of
from ort_lite.ep import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from eps.opencl.payload.format import ProgramPayload, ProgramVariant
    from eps.opencl.program_spec import Weight
    from ort_lite.ep import WeightsSink

WEIGHT_ALIGNMENT = 512
"""In bytes; no device seen or documented asks more of a buffer's parts (NVIDIA asks this)."""

SHARED_FROM = 4096
"""Bytes of the smallest weight that goes to the file of a session group."""


def write_payload(
    payload: ProgramPayload, out: BinaryIO, shared: WeightsSink | None = None
) -> None:
    """Write it, large weights to `shared` where that is given."""
    weights = _WeightTable(shared)
    body = _Body()
    rows = [
        {
            "table": encode_spec(variant.spec),
            **_add_binaries(variant, body),
            "source": body.add([zlib.compress(variant.spec.source.encode(), 6)], digest=True),
            "weights": weights.indices(variant.spec.weights),
            "tuned": rows_of(variant.spec.tuned),
        }
        for variant in payload.variants
    ]
    model = payload.model and {
        "graph": body.add([payload.model.proto], digest=False),
        "weights": weights.indices(payload.model.weights),
        "whole": payload.model.whole,
    }
    content = {
        "identity": payload.identity.to_mapping(),
        "variants": rows,
        "model": model,
        "weights": weights.rows,
        "pool": body.add(weights.pool, digest=False),
    }
    version = VERSION if any(v.spec.parts for v in payload.variants) else WITHOUT_PARTS
    header = json.dumps(content, separators=(",", ":")).encode()
    base = -(-(HEAD.size + len(header)) // ALIGNMENT) * ALIGNMENT
    out.write(HEAD.pack(MAGIC, version, len(header), base + body.size, blake3(header).digest()))
    out.write(header)
    out.write(bytes(base - HEAD.size - len(header)))
    for piece in body.pieces:
        out.write(piece)


def _add_binaries(variant: ProgramVariant, body: _Body) -> dict[str, object]:
    sections = [body.add([binary], digest=True) for binary in variant.binaries]
    if not variant.spec.parts:
        (section,) = sections
        return {"binary": section}
    parts = zip(sections, variant.spec.parts, strict=True)
    return {"parts": [{"binary": s, "functions": list(part.functions)} for s, part in parts]}


class _Body:
    """Sections one after the other, as the pieces that they are written in."""

    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.size = 0

    def add(self, pieces: Sequence[bytes | memoryview], *, digest: bool) -> dict[str, object]:
        """A section, filled up to `ALIGNMENT`; its row in the header."""
        size = sum(len(piece) for piece in pieces)
        name = blake3(b"".join(pieces)).hexdigest() if digest else ""
        section = {"offset": self.size, "size": size, "blake3": name}
        self.pieces += [*pieces, bytes(-size % ALIGNMENT)]
        self.size += size + len(self.pieces[-1])
        return section


class _WeightTable:
    """Weights of every part of a payload, each content once."""

    def __init__(self, shared: WeightsSink | None) -> None:
        self.rows: list[list[object]] = []
        self.pool: list[bytes | memoryview] = []
        self._shared = shared
        self._end = 0
        self._known: dict[str, int] = {}

    def indices(self, weights: Sequence[Weight]) -> list[int]:
        """Rows of the weights; those that are not there are added."""
        return [self._index(weight) for weight in weights]

    def _index(self, weight: Weight) -> int:
        index = self._known.get(weight.digest)
        if index is None:
            index = self._known[weight.digest] = len(self.rows)
            self.rows.append([*self._place(weight), weight.data.nbytes, weight.digest])
        return index

    def _place(self, weight: Weight) -> tuple[int, int]:
        if self._shared is not None and weight.data.nbytes >= SHARED_FROM:
            return IN_SHARED_FILE, self._shared.add_weights(weight.data)
        at = self._end
        fill = bytes(-weight.data.nbytes % WEIGHT_ALIGNMENT)
        self.pool += [weight.data, fill]
        self._end += weight.data.nbytes + len(fill)
        return IN_POOL, at


def update_payload(
    payload: ProgramPayload, new: Sequence[ProgramVariant], most: int
) -> ProgramPayload:
    """`payload` with the programs `new`, which replace those for the same shapes.

    Args:
        payload: With the whole partition in it, or it could meet no new shapes.
        new: The oldest first.
        most: Programs that stay; the oldest go.

    Raises:
        InvalidGraph: Its shapes are fixed, or the partition is not in it.
    """
    if payload.model is None or not payload.model.whole:
        raise InvalidGraph(
            f"the payload accepts no programs for other shapes (reason: {Reason.SHAPE})",
            reason=Reason.SHAPE,
        )
    variants = {_input_shapes(variant): variant for variant in payload.variants}
    for variant in new:
        variants.pop(_input_shapes(variant), None)
        variants[_input_shapes(variant)] = variant
    return replace(payload, variants=tuple(variants.values())[-most:])


def _input_shapes(variant: ProgramVariant) -> frozenset[tuple[str, tuple[int, ...]]]:
    return frozenset((port.name, port.shape) for port in variant.spec.inputs)
