"""Does ORT_PARALLEL pay? Models of four branches, and real ones, with nodes in turn and at once.

`python -m benchmarks.latency.parallel [MODEL ...] [--turns N] [--json FILE]`; CPU EP alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import OURS_CPU, OURS_NODES, OURS_PARALLEL
from benchmarks.harness.measure import interleave
from benchmarks.harness.report import milliseconds, over, text_table, write_json
from benchmarks.harness.samples import Sample, ask, make_sample
from benchmarks.latency.latency import variant

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

    from benchmarks.harness.measure import Measurement

TURNS = 15
BRANCHES = 4
ELEMENTWISE: Mapping[str, int] = MappingProxyType(
    {f"elementwise_{size}": size for size in (1 << 12, 1 << 16, 1 << 20)}
)
"""Sin, Tanh, Exp and Sigmoid of so many floats in each branch; numpy uses one thread for them."""
PRODUCTS: Mapping[str, int] = MappingProxyType({f"product_{n}": n for n in (64, 256, 1024)})
"""A product of square matrices of that side in each branch; BLAS has threads of its own."""
COLUMNS = ("model", "sequential", "parallel", "ratio", "one BLAS thread", "ratio")
LEGEND = """
Milliseconds, medians; ratios are over ORT_SEQUENTIAL, below 1 ORT_PARALLEL pays.
one BLAS thread: ORT_PARALLEL with intra_op_num_threads of 1.
"""


def main() -> int:
    """Measure and print."""
    made = (*ELEMENTWISE, *PRODUCTS)
    arguments = ask(__doc__, TURNS, made, made)
    results = {}
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            sample = (
                branches(name, Path(folder)) if name in made else make_sample(name, Path(folder))
            )
            engines = (OURS_CPU, OURS_PARALLEL, OURS_NODES)
            results[name] = interleave([variant(e, sample) for e in engines], arguments.turns)
        sys.stderr.write(f"{name} done\n")
    rows = [(name, *cells(measured)) for name, measured in results.items()]
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND)
    if arguments.json is not None:
        write_json(arguments.json, results)
    return 0


def cells(measured: dict[str, Measurement]) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    compared = (
        (milliseconds(measured, e), over(measured, e, OURS_CPU))
        for e in (OURS_PARALLEL, OURS_NODES)
    )
    return (milliseconds(measured, OURS_CPU), *(cell for pair in compared for cell in pair))


def branches(name: str, folder: Path) -> Sample:
    """The model of ELEMENTWISE or PRODUCTS by that name: branches from one input, added up."""
    import onnx  # noqa: PLC0415 - slow to import, and for this alone
    from onnx import helper, numpy_helper  # noqa: PLC0415 - see above

    side = PRODUCTS.get(name, 0)
    shape = [side, side] if side else [ELEMENTWISE[name]]
    random = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    for i in range(BRANCHES):
        source = "x"
        for op in ("MatMul",) if side else ("Sin", "Tanh", "Exp", "Sigmoid"):
            inputs = [source]
            if side:
                matrix = random.standard_normal((side, side), np.float32) / np.float32(side**0.5)
                weights.append(numpy_helper.from_array(matrix, f"w{i}"))
                inputs.append(f"w{i}")
            source = f"{op}{i}"
            nodes.append(helper.make_node(op, inputs, [source], name=source))
    ends = [node.output[0] for node in nodes if node.op_type in ("MatMul", "Sigmoid")]
    nodes.append(helper.make_node("Sum", ends, ["y"], name="sum"))
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
        weights,
    )
    path, feed = folder / f"{name}.onnx", folder / f"{name}.npz"
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[opset]), path)
    np.savez(feed, x=random.standard_normal(shape, np.float32))
    return Sample(name=name, path=path, feed=feed)


if __name__ == "__main__":
    sys.exit(main())
