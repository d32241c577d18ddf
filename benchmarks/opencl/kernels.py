"""How near the OpenCL EP's kernels come to onnxruntime's rate and to the memory's bandwidth.

`python -m benchmarks.opencl.kernels [--turns N] [--rows]`. Products and convolutions are chains of
equal nodes, in turns with onnxruntime's CPU EP; `--rows` leaves them out. Everything else is a
kernel over arrays larger than the caches, and over small ones, in turns with a copy of as many
bytes in the same process.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import OURS_OPENCL, PEER_CPU
from benchmarks.harness.measure import interleave
from benchmarks.harness.report import milliseconds, over, text_table
from benchmarks.harness.samples import Sample
from benchmarks.opencl.copy_peer import CopyPeer
from benchmarks.opencl.kernel_times import kernel_calls
from benchmarks.opencl.models import variant
from benchmarks.opencl.quantised_chains import quantise_chain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Array = np.ndarray[Any, np.dtype[np.float32]]

TURNS = 9
CHAIN = 8
PRODUCTS = ((64, 384), (128, 384), (128, 768), (768, 768))
"""Rows, and channels in and out."""
QUANTISED = "int8"
"""What the names of chains of 8-bit integers end with."""
CONVOLUTIONS = ((64, 56, 3), (128, 28, 3), (256, 14, 3), (512, 7, 3), (256, 28, 1))
"""Channels in and out, rows and columns, kernel."""
ROWS = {"memory": (4096, 1024), "cache": (128, 1024)}
"""Arrays of 16 MiB, and of 0.5 MiB, which stay in a CPU's caches: what is left is arithmetic."""
ROWWISE = {
    "Relu": ("Relu",),
    "Sigmoid": ("Sigmoid",),
    "Gelu": ("Gelu",),
    "Softmax": ("Softmax",),
    "LayerNormalization": ("LayerNormalization", "scale", "bias"),
    "Add": ("Add", "other"),
}
SHARES = ("MB", "us", "GB/s", "copy", "share")
LEGEND = """
Chains: milliseconds of a whole run, medians; vs CPU: over onnxruntime's CPU execution provider.
MB: bytes that must be read and written. copy: GB/s of a copy that moves as many, in turns with
the kernel, written and read by the host as the kernel's arrays are. Fastest of the turns.
First of 16 MiB an array, then of 0.5 MiB.
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each is timed")
    parser.add_argument("--rows", action="store_true", help="no products and convolutions")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
        dense = [] if arguments.rows else chains(Path(folder))
        rates = [rate_row(sample, work, arguments.turns) for sample, work in dense]
        shares = [
            share_row(name, [rowwise(Path(folder), name, size) for size in ROWS], arguments.turns)
            for name in ROWWISE
        ]
    sys.stdout.write(conditions())
    columns = ("chain", "run", "CPU", "GFLOP/s", "CPU", "vs CPU")
    if rates:
        sys.stdout.write(text_table(columns, rates) + "\n")
    sys.stdout.write(text_table(("kernel", *SHARES, *SHARES), shares) + LEGEND)
    return 0


def chains(folder: Path) -> list[tuple[Sample, int]]:
    """Models of equal nodes one after the other, and the operations of each."""
    samples = []
    for rows, width in PRODUCTS:
        weights = _weights((width, width))
        shape, name = [rows, width], f"MatMul {rows}x{width}"
        made = chain(folder, name, shape, weights), quantised_chain(folder, name, shape, weights)
        samples += [(one, 2 * rows * width * width * CHAIN) for one in made]
    for channels, size, kernel in CONVOLUTIONS:
        weights = _weights((channels, channels, kernel, kernel))
        shape, name = [1, channels, size, size], f"Conv {channels}@{size} {kernel}x{kernel}"
        pads = [kernel // 2] * 4
        made = (
            chain(folder, name, shape, weights, pads),
            quantised_chain(folder, name, shape, weights, pads),
        )
        samples += [(one, 2 * size * size * weights[0].size * CHAIN) for one in made]
    return samples


def _weights(shape: tuple[int, ...]) -> list[Array]:
    """Of each node in a chain; small enough that its values stay where they are.

    No two are equal: the OpenCL EP keeps equal ones once, and would find them in the cache.
    """
    one = np.random.default_rng(0).standard_normal(shape, np.float32) / np.float32(shape[0])
    return [np.roll(one, i) for i in range(CHAIN)]


def chain(
    folder: Path, name: str, shape: list[int], weights: list[Array], pads: list[int] | None = None
) -> Sample:
    """`CHAIN` nodes, each with weights of its own as in a network."""
    kind = "MatMul" if pads is None else "Conv"
    nodes = [helper.make_node(kind, [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(CHAIN)]
    if pads is not None:
        for node in nodes:
            node.attribute.append(helper.make_attribute("pads", pads))
    constants = [numpy_helper.from_array(one, f"w{i}") for i, one in enumerate(weights)]
    return save_model(folder, name, nodes, shape, constants)


def quantised_chain(
    folder: Path, name: str, shape: list[int], weights: list[Array], pads: list[int] | None = None
) -> Sample:
    """The same of 8-bit integers."""
    kind = "MatMul" if pads is None else "Conv"
    nodes, constants = quantise_chain(kind, weights, pads or ())
    return save_model(folder, f"{name} {QUANTISED}", nodes, shape, constants)


def rowwise(folder: Path, name: str, size: str) -> tuple[Sample, int]:
    """A model of one node, and the bytes that it must move."""
    rows = ROWS[size]
    kind, *others = ROWWISE[name]
    shapes = {"scale": rows[1:], "bias": rows[1:], "other": rows}
    random = np.random.default_rng(0)
    constants = [
        numpy_helper.from_array(random.standard_normal(shapes[o], np.float32), o) for o in others
    ]
    node = helper.make_node(kind, ["x0", *others], ["x1"])
    moved = 2 * 4 * int(np.prod(rows)) + sum(len(c.raw_data) for c in constants)
    return save_model(folder, f"{name} {size}", [node], list(rows), constants), moved


def save_model(
    folder: Path,
    name: str,
    nodes: list[onnx.NodeProto],
    shape: list[int],
    constants: list[onnx.TensorProto],
) -> Sample:
    """The model from x0 to the last node's output, of one shape, with an input."""
    ends = [
        helper.make_tensor_value_info(end, onnx.TensorProto.FLOAT, shape)
        for end in ("x0", nodes[-1].output[0])
    ]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], constants)
    opset = helper.make_opsetid("", 20)
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[opset]), path)
    feed = folder / f"{name}.npz"
    np.savez(feed, x0=np.random.default_rng(1).standard_normal(shape, np.float32))
    return Sample(name=name, path=path, feed=feed)


def rate_row(sample: Sample, work: int, turns: int) -> tuple[str, ...]:
    """One line of the first table."""
    runs = interleave([variant(e, "run", sample) for e in (OURS_OPENCL, PEER_CPU)], turns)
    sys.stderr.write(f"{sample.name} done\n")
    return (
        sample.name,
        *(milliseconds(runs, e) for e in (OURS_OPENCL, PEER_CPU)),
        *(f"{work / runs[e].seconds / 1e9:.0f}" for e in (OURS_OPENCL, PEER_CPU)),
        over(runs, OURS_OPENCL, PEER_CPU),
    )


def share_row(name: str, samples: Sequence[tuple[Sample, int]], turns: int) -> tuple[str, ...]:
    """One line of the second table; a node may be several kernels."""
    cells = [name]
    for sample, moved in samples:
        copy = CopyPeer(moved)
        taken = kernel_calls(sample, turns, copy.once)
        microseconds = min(sum(call.microseconds for call in calls) for calls in taken)
        rate = moved / microseconds / 1e3
        cells += [f"{moved / 1e6:.1f}", f"{microseconds:.0f}", f"{rate:.1f}", f"{copy.rate:.1f}"]
        cells.append(f"{rate / copy.rate:.0%}")
    sys.stderr.write(f"{name} done\n")
    return tuple(cells)


if __name__ == "__main__":
    sys.exit(main())
