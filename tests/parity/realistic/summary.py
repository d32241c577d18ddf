"""An output in a few hundred bytes: enough to tell whether another one is near it everywhere."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from parity.realistic.drawn import Drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parity.realistic.case import RecordedCase
    from parity.realistic.drawn import Array

SAMPLES = 24
"""Elements that are kept as they are."""
BLOCKS = 16
"""Runs of elements whose mean is kept: an error anywhere moves one of them."""
PER_CENT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One output of one case.

    Attributes:
        digest: Of all elements where they must be equal; "" where they need only be near.
        samples, means, largest: Where they need only be near; the first two are float64 in
            base64, `largest` is the largest finite magnitude.
        unusual: How many elements are infinite or not a number.
    """

    dtype: str
    shape: tuple[int, ...]
    digest: str = ""
    samples: str = ""
    means: str = ""
    largest: float = 0
    unusual: int = 0

    @classmethod
    def of(cls, value: Array, key: str, *, exact: bool) -> Summary:
        """The summary of an output; `key` chooses the samples."""
        kind = "string" if value.dtype == object else value.dtype.name
        if exact or value.dtype.kind not in "fiu":
            return cls(dtype=kind, shape=value.shape, digest=_digest(value))
        wide = value.astype(np.float64).reshape(-1)
        finite = np.isfinite(wide)
        return cls(
            dtype=kind,
            shape=value.shape,
            samples=_coded(wide[_places(key, wide.size)]),
            means=_coded(_means(np.where(finite, wide, 0))),
            largest=float(np.abs(wide[finite]).max(initial=0)),
            unusual=int(wide.size - np.count_nonzero(finite)),
        )

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Summary:
        """From what `asdict` of one became in JSON."""
        return cls(**{**row, "shape": tuple(row["shape"])})

    def difference(self, other: Summary, case: RecordedCase) -> str:
        """How `other` differs by more than the case allows; "" if it does not."""
        for name in ("dtype", "shape", "digest", "unusual"):
            if getattr(self, name) != getattr(other, name):
                return f"{name} {getattr(other, name)}, recorded {getattr(self, name)}"
        near = 2 * case.rtol * self.largest
        bounds = (near, near) if "float" in self.dtype else (case.steps, case.steps * PER_CENT)
        for what, most in zip(("samples", "means"), bounds, strict=True):
            apart = _apart(_decoded(getattr(other, what)), _decoded(getattr(self, what)))
            if not apart <= most:
                return f"{what} differ by {apart:.3g}, allowed is {most:.3g}"
        return ""

    def as_row(self) -> dict[str, Any]:
        """For JSON, without what says nothing."""
        return {name: value for name, value in asdict(self).items() if value not in ("", 0)}


def summaries(case: RecordedCase, results: Sequence[Any]) -> list[Summary]:
    """A summary of each array in `results`, those in sequences and maps included."""
    return [
        Summary.of(value, f"{case.name}>{i}", exact=_is_exact(case, value))
        for i, value in enumerate(_arrays(results))
    ]


def inputs_digest(inputs: Sequence[Array | None]) -> str:
    """Of all inputs: a record is of no use for others."""
    return _digest(np.array([_digest(x) if x is not None else "" for x in inputs], object))


def _arrays(value: Any) -> list[Array]:
    if isinstance(value, dict):
        return [np.array(list(value)), np.array(list(value.values()))]
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    return [np.asarray(value)]


def _is_exact(case: RecordedCase, value: Array) -> bool:
    return not (case.rtol if value.dtype.kind == "f" else case.steps)


def _apart(ours: Array, theirs: Array) -> float:
    """The largest difference; infinities and NaN differ from all but themselves."""
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(invalid="ignore"):
        return float(np.where(same, 0, np.abs(ours - theirs)).max(initial=0))


def _digest(value: Array) -> str:
    if value.dtype.kind in "OUS":
        data = "\0".join(map(str, value.reshape(-1).tolist())).encode()
    elif value.dtype.kind == "f":  # one zero, one NaN
        data = np.where(np.isnan(value), value.dtype.type(np.nan), value + 0).tobytes()
    else:
        data = np.ascontiguousarray(value).tobytes()
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _places(key: str, size: int) -> Array:
    if size <= SAMPLES:
        return np.arange(size)
    return Drawn("whole", (SAMPLES,), np.intp, 0, size).array(key)


def _means(wide: Array) -> Array:
    if not wide.size:
        return wide
    return np.array([part.mean() for part in np.array_split(wide, min(BLOCKS, wide.size))])


def _coded(values: Array) -> str:
    return base64.b64encode(values.astype("<f8").tobytes()).decode()


def _decoded(text: str) -> Array:
    return np.frombuffer(base64.b64decode(text), "<f8")
