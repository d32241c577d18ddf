"""How near the OpenCL EP's kernels come to onnxruntime's rate and to the memory's bandwidth.

`python benchmarks/opencl_kernels.py [--turns N]`. Products and convolutions are chains of equal
nodes, in turns with onnxruntime's CPU EP. Everything else is a kernel over arrays larger than the
caches, against the faster of the driver's copy and a plain copy kernel in the same process.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pyopencl as cl
from engines import OURS_OPENCL, PEER_CPU
from kernel_times import kernel_calls
from measure import interleave
from onnx import helper, numpy_helper
from opencl import variant
from report import milliseconds, over, text_table
from samples import Sample

from eps.opencl.device import choose, describe_target, find_devices
from eps.opencl.options import OpenCLOptions
from eps.opencl.program import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Array = np.ndarray[Any, np.dtype[np.float32]]

TURNS = 9
CHAIN = 8
PRODUCTS = ((64, 384), (128, 384), (128, 768), (768, 768))
"""Rows, and channels in and out."""
CONVOLUTIONS = ((64, 56, 3), (128, 28, 3), (256, 14, 3), (512, 7, 3), (256, 28, 1))
"""Channels in and out, rows and columns, kernel."""
ROWS = (4096, 1024)
ROWWISE = {
    "Relu": ("Relu",),
    "Sigmoid": ("Sigmoid",),
    "Gelu": ("Gelu",),
    "Softmax": ("Softmax",),
    "LayerNormalization": ("LayerNormalization", "scale", "bias"),
    "Add": ("Add", "other"),
}
COPIES = 20
LEGEND = """
Chains: milliseconds of a whole run, medians; vs CPU: over onnxruntime's CPU execution provider.
Share: bytes that must be read and written, over time, over the bandwidth of the faster copy.
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each is timed")
    turns = parser.parse_args().turns
    with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
        rates = [rate_row(sample, work, turns) for sample, work in chains(Path(folder))]
        copied = copy_bandwidth(4 * int(np.prod(ROWS)))
        shares = [share_row(sample, size, copied) for sample, size in rowwise(Path(folder))]
    columns = ("chain", "run", "CPU", "GFLOP/s", "CPU", "vs CPU")
    sys.stdout.write(text_table(columns, rates) + "\n")
    sys.stdout.write(f"copy: {copied:.1f} GB/s\n")
    sys.stdout.write(text_table(("kernel", "us", "GB/s", "share"), shares) + LEGEND)
    return 0


def chains(folder: Path) -> list[tuple[Sample, int]]:
    """Models of equal nodes one after the other, and the operations of each."""
    found = []
    for rows, width in PRODUCTS:
        weight = _weights((width, width))
        made = chain(folder, f"MatMul {rows}x{width}", [rows, width], weight)
        found.append((made, 2 * rows * width * width * CHAIN))
    for channels, size, kernel in CONVOLUTIONS:
        weight = _weights((channels, channels, kernel, kernel))
        made = chain(
            folder,
            f"Conv {channels}@{size} {kernel}x{kernel}",
            [1, channels, size, size],
            weight,
            pads=[kernel // 2] * 4,
        )
        found.append((made, 2 * size * size * channels * channels * kernel * kernel * CHAIN))
    return found


def _weights(shape: tuple[int, ...]) -> Array:
    """Small enough that a chain's values stay where they are."""
    return np.random.default_rng(0).standard_normal(shape, np.float32) / np.float32(shape[0])


def chain(
    folder: Path, name: str, shape: list[int], weight: Array, pads: list[int] | None = None
) -> Sample:
    """`CHAIN` nodes, each with weights of its own as in a network."""
    kind = "MatMul" if pads is None else "Conv"
    nodes = [helper.make_node(kind, [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(CHAIN)]
    if pads is not None:
        for node in nodes:
            node.attribute.append(helper.make_attribute("pads", pads))
    constants = [numpy_helper.from_array(weight, f"w{i}") for i in range(CHAIN)]
    return saved(folder, name, nodes, shape, constants)


def rowwise(folder: Path) -> list[tuple[Sample, int]]:
    """Models of one node, and the bytes that it must move."""
    found = []
    random = np.random.default_rng(0)
    for name, (kind, *others) in ROWWISE.items():
        shapes = {"scale": ROWS[1:], "bias": ROWS[1:], "other": ROWS}
        constants = [
            numpy_helper.from_array(random.standard_normal(shapes[o], np.float32), o)
            for o in others
        ]
        node = helper.make_node(kind, ["x0", *others], ["x1"])
        size = 2 * 4 * int(np.prod(ROWS)) + sum(len(c.raw_data) for c in constants)
        found.append((saved(folder, name, [node], list(ROWS), constants), size))
    return found


def saved(
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


def share_row(sample: Sample, size: int, copied: float) -> tuple[str, ...]:
    """One line of the second table; the node may be several kernels."""
    passes = kernel_calls(sample)
    microseconds = min(sum(time for _, time, _ in calls) for calls in passes)
    rate = size / microseconds / 1e3
    return (sample.name, f"{microseconds:.0f}", f"{rate:.1f}", f"{rate / copied:.0%}")


def copy_bandwidth(size: int) -> float:
    """GB/s, read and written, of the faster way to copy `size` bytes."""
    found = choose(find_devices(), OpenCLOptions())
    context = cl.Context([found.device])
    timed = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, properties=timed)
    buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, size) for _ in range(2)]
    for buffer in buffers:
        cl.enqueue_fill_buffer(queue, buffer, np.zeros(1, np.uint8), 0, size)
    tasks = describe_target(found).tasks
    each = size // 4 // tasks
    source = f"""__kernel void copy(__global const float8* x, __global float8* y) {{
      const int id = get_global_id(0);
      for (int i = id * {each // 8}; i < (id + 1) * {each // 8}; ++i) y[i] = x[i];
    }}"""
    kernel = cl.Kernel(build(context, source, ""), "copy")
    kernel.set_args(*buffers)

    def by_kernel() -> cl.Event:
        return cl.enqueue_nd_range_kernel(queue, kernel, (tasks,), (1,))

    def by_driver() -> cl.Event:
        return cl.enqueue_copy(queue, buffers[1], buffers[0])

    return max(2 * size / nanoseconds(way) for way in (by_kernel, by_driver))


def nanoseconds(start: Callable[[], cl.Event]) -> int:
    """Of the fastest of some, the first not counted."""
    times = []
    for _ in range(COPIES + 1):
        event = start()
        event.wait()
        times.append(event.profile.end - event.profile.start)
    return min(times[1:])


if __name__ == "__main__":
    sys.exit(main())
