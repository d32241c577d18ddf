"""A compiled partition as a value: steps and constants, to bytes and back.

0    8 bytes  "EXAMPLE1"
8    u32      size of the JSON text, little-endian
12   JSON     {inputs, outputs, steps, constants: [[name, dims], ...], sum_in}
...  float32  the constants, one after the other, to the end

Where constants lie in a weights file of several programs, each has its offset there as a third
element, and nothing follows the JSON text.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

OPERATORS = ("Add", "MatMul", "Mul", "Relu")
SUMS = ("float32", "float64")

_HEAD = struct.Struct("<8sI")
_MAGIC = b"EXAMPLE1"


class ProgramError(ValueError):
    """Bytes that are not a program."""


class Signature(NamedTuple):
    """An input or output; -1 is a free dimension."""

    name: str
    elem_type: int
    dims: tuple[int, ...] | None


class Step(NamedTuple):
    """One operator call."""

    op_type: str
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Steps in an order in which they can run."""

    inputs: tuple[Signature, ...]
    outputs: tuple[Signature, ...]
    steps: tuple[Step, ...]
    constants: Mapping[str, Array]
    sum_in: str

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for `inputs`, both in the order of the signatures."""
        values = dict(self.constants)
        values.update(zip((one.name for one in self.inputs), inputs, strict=True))
        for step in self.steps:
            values[step.output] = self._compute(step, [values[name] for name in step.inputs])
        return [values[one.name] for one in self.outputs]

    def _compute(self, step: Step, arguments: Sequence[Array]) -> Array:
        """Add-14, Mul-14, Relu-14 and MatMul-13 of ai.onnx."""
        result: Any
        with np.errstate(all="ignore"):  # infinities and NaN are results
            match step.op_type:
                case "Add":
                    result = arguments[0] + arguments[1]
                case "Mul":
                    result = arguments[0] * arguments[1]
                case "Relu":
                    result = np.maximum(arguments[0], 0)
                case _:
                    result = np.matmul(*(a.astype(self.sum_in) for a in arguments))
        return np.asarray(result, np.float32)

    def check(self) -> None:
        """Find what would stop a run half-way.

        Raises:
            ProgramError: A step reads a value that no step makes, or has an unknown operator.
        """
        known = {*self.constants, *(one.name for one in self.inputs)}
        for step in self.steps:
            if step.op_type not in OPERATORS or not known.issuperset(step.inputs):
                raise ProgramError(f"{step} cannot run")
            known.add(step.output)
        missing = {one.name for one in self.outputs} - known
        if missing or self.sum_in not in SUMS:
            raise ProgramError(f"makes no {sorted(missing)}, or adds up in {self.sum_in}")

    def to_bytes(self, places: Sequence[int] | None = None) -> bytes:
        """The whole program, or one whose constants lie at `places` of a weights file."""
        listed = [[name, value.shape] for name, value in self.constants.items()]
        if places is not None:
            listed = [[*one, place] for one, place in zip(listed, places, strict=True)]
        content = {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "steps": self.steps,
            "constants": listed,
            "sum_in": self.sum_in,
        }
        text = json.dumps(content).encode()
        data = b"" if places is not None else b"".join(map(bytes, self.constant_data()))
        return _HEAD.pack(_MAGIC, len(text)) + text + data

    def constant_data(self) -> list[memoryview]:
        """The bytes of each constant."""
        arrays = [np.ascontiguousarray(value, "<f4") for value in self.constants.values()]
        return [array.reshape(-1).view(np.uint8).data for array in arrays]

    @classmethod
    def from_bytes(cls, payload: memoryview, weights: memoryview | None = None) -> Program:
        """Read what `to_bytes` wrote, its constants in `weights` where they went there.

        Raises:
            ProgramError: Anything else.
        """
        try:
            magic, size = _HEAD.unpack_from(payload)
            if magic != _MAGIC:
                raise ProgramError(f"starts with {magic!r}")
            content = json.loads(bytes(payload[_HEAD.size : _HEAD.size + size]))
            program = cls(
                inputs=tuple(map(_signature, content["inputs"])),
                outputs=tuple(map(_signature, content["outputs"])),
                steps=tuple(Step(op, tuple(names), out) for op, names, out in content["steps"]),
                constants=(
                    _constants(content["constants"], payload[_HEAD.size + size :])
                    if weights is None
                    else _read_arrays(content["constants"], weights)
                ),
                sum_in=content["sum_in"],
            )
            program.check()
        except (struct.error, KeyError, TypeError, ValueError) as exc:
            raise ProgramError(f"{type(exc).__name__}: {exc}") from exc
        return program


def _signature(entry: Sequence[Any]) -> Signature:
    name, elem_type, dims = entry
    return Signature(name, elem_type, None if dims is None else tuple(dims))


def _constants(listed: Sequence[Any], data: memoryview) -> dict[str, Array]:
    constants = {}
    for name, dims in listed:
        count = math.prod(dims)
        if min(dims, default=0) < 0 or count * 4 > len(data):
            raise ProgramError(f"constant '{name}' {dims} in {len(data)} bytes")
        constants[name] = np.frombuffer(data, "<f4", count).reshape(dims)
        data = data[count * 4 :]
    if data:
        raise ProgramError(f"{len(data)} bytes too many")
    return constants


def _read_arrays(listed: Sequence[Any], weights: memoryview) -> dict[str, Array]:
    arrays = {}
    for name, dims, place in listed:
        count = math.prod(dims)
        if min((*dims, place)) < 0 or place + count * 4 > len(weights):
            raise ProgramError(f"constant '{name}' {dims} at {place} of {len(weights)} bytes")
        arrays[name] = np.frombuffer(weights, "<f4", count, place).reshape(dims)
    return arrays
