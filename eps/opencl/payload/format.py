"""A compiled partition as bytes.

    0      8 bytes   "OLOPENCL"
    8      u32       version, 6
    12     u32       size of the header
    16     u64       size of the whole payload
    24     32 bytes  BLAKE3 of the header
    56     JSON      {identity, variants: [{table, binary, source, weights, tuned}], model, weights,
                     pool}
    ...    zeros to a multiple of 4,096, section, zeros, section, ...

A section is {offset, size, blake3}; `blake3` is "" for the pool and the model, which no driver
parses and which the container's digest covers. `source` is deflated. `model` is null, or
{graph, weights, whole} where the partition's inputs have free dimensions: an ONNX model, whose
large initializers have the place of one of its weights as the location of external data. Where it
is not whole they are left out, and only the programs that are there can run.

`weights` of the header lists [where, offset, size, blake3], each content once: where 0 it lies
in the section `pool`, at a multiple of 512; where 1 in the file that models of a session group
share. `weights` of a variant and of the model are indices into it. `tuned`, which may be
missing, has the tilings that were measured: programs for other shapes take them over. Integers
are little-endian.

Sections may be named by several variants, and are digested and inflated once; all sources together
are at most 64 MiB. Weights share no bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.blueprint import Blueprint, Weight

MAGIC = b"OLOPENCL"
VERSION = 6
HEAD = struct.Struct("<8sIIQ32s")
ALIGNMENT = 4096
IN_POOL, IN_SHARED_FILE = 0, 1


@dataclass(frozen=True, slots=True)
class Variant:
    """One program: what was compiled, and the driver's binary of it."""

    blueprint: Blueprint
    binary: memoryview


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A partition with free dimensions: an ONNX model whose large initializers are `weights`.

    Attributes:
        whole: Whether they are there, to compile it for other shapes.
    """

    proto: memoryview
    weights: tuple[Weight, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Payload:
    """Everything in a payload.

    Attributes:
        identity: Of the device and driver that made the binaries.
        model: The partition; None where its shapes are fixed.
    """

    identity: HardwareIdentity
    variants: tuple[Variant, ...]
    model: StoredGraph | None = None
