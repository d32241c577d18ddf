"""Kernels that share a launch: which do, and that their numbers are onnxruntime's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from device_models import OPENCL, NodeSet
from golden_kernels import CPU, GPU
from system_limits import WINDOWS

import ort_lite as ort
from ctx_formats.lean_dataclass import dataclass, replace
from eps.opencl.compile.codegen.join_launches import MOST_OPERANDS, join_launches
from eps.opencl.compile.codegen.kernel import ITEM, Kernel
from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.compile.views import Storage
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eps.opencl.target import Target

Array = np.ndarray[Any, np.dtype[Any]]

CONTRIB = "com.microsoft"
BYTES = replace(CPU, multiplies_pairs=True, prefetches=True)
NO_POCL = pytest.mark.skipif(WINDOWS, reason="PyPI has no PoCL for Windows")
OPTIONS = ({}, pytest.param({"platform": "portable"}, marks=NO_POCL))
"""A program with one kernel that calls all others, and one with a kernel for each launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Three products of one input, and two more that a gate is made of.

    Attributes:
        rows, depth: Of the input.
        widths: Columns of the three products; the gate has those of the first.
        bits, block, zeros: Of weights.
    """

    rows: int
    depth: int
    widths: tuple[int, ...]
    bits: int = 4
    block: int = 32
    zeros: bool = False


class LayerSet(NodeSet):
    """Layers with random weights; equal seeds give equal ones."""

    def __init__(self, level: int = 0, *, is_shared: bool = True) -> None:
        """`is_shared`: products of a layer read one value, not equal ones of their own."""
        super().__init__()
        self._random = np.random.default_rng(56)
        self._level, self._is_shared = level, is_shared
        self._kept: list[str] = []

    def multiply(self, layer: Layer, x: str, width: int, *, bias: bool = False) -> str:
        """x times a matrix of its own."""
        bits, block, blocks = layer.bits, layer.block, -(-layer.depth // layer.block)
        scales = self._random.uniform(0.5, 1.5, (width, blocks)) / (8 << bits)
        inputs: list[Array | str | None] = [
            x, self._bytes_of(width, blocks, block * bits // 8), scales.astype(np.float32),
            self._bytes_of(width, -(-blocks * bits // 8)) if layer.zeros else None,
        ]  # fmt: skip
        inputs += [None, self._floats_of(width)] if bias else []
        fixed = tuple(i for i in range(1, len(inputs)) if inputs[i] is not None)
        return self.add(
            "MatMulNBits", inputs, fixed, domain=CONTRIB, K=layer.depth, N=width, bits=bits,
            block_size=block, accuracy_level=self._level,
        )  # fmt: skip

    def add_layer(self, layer: Layer) -> None:
        """Its three products, and the product of the gate, are outputs."""
        value = self._floats_of(layer.rows, layer.depth)
        one = self.add("Relu", [value])
        xs = (one if self._is_shared else self.add("Relu", [value]) for _ in range(5))
        made = [self.multiply(layer, next(xs), width, bias=True) for width in layer.widths]
        gate, up = (self.multiply(layer, next(xs), layer.widths[0]) for _ in range(2))
        active = self.add("Mul", [gate, self.add("Sigmoid", [gate])])
        self.keep(*made, self.add("Mul", [active, up]))

    def keep(self, *names: str) -> None:
        """Have these outputs alone, and those that were kept before."""
        self._kept += names
        del self.model.graph.output[:]
        for name in self._kept:
            self.model.graph.output.add().name = name

    def _floats_of(self, *shape: int) -> Array:
        return self._random.standard_normal(shape).astype(np.float32)

    def _bytes_of(self, *shape: int) -> Array:
        return self._random.integers(0, 256, shape).astype(np.uint8)


LAYERS = (
    Layer(rows=1, depth=64, widths=(96, 32, 32)),
    Layer(rows=2, depth=256, widths=(160, 64, 64), block=128, zeros=True),
    Layer(rows=3, depth=90, widths=(70, 33, 33), zeros=True),  # panels overlap, blocks are cut off
    Layer(rows=1, depth=256, widths=(96, 32, 16), bits=8, block=128),
    Layer(rows=2, depth=96, widths=(64, 8, 40), bits=8, zeros=True),
    Layer(rows=21, depth=600, widths=(64, 32, 32)),  # sums in parts
    Layer(rows=37, depth=96, widths=(64, 33, 8), bits=8, zeros=True),
)


def make_layers(layers: Sequence[Layer], level: int, *, is_shared: bool = True) -> LayerSet:
    nodes = LayerSet(level, is_shared=is_shared)
    for layer in layers:
        nodes.add_layer(layer)
    return nodes


def gated_layer(rows: int, level: int = 0) -> LayerSet:
    nodes = LayerSet(level)
    nodes.add_layer(Layer(rows=rows, depth=64, widths=(96, 32, 32), zeros=True))
    return nodes


def launches_of(nodes: NodeSet, target: Target) -> list[str]:
    """Kernels of a model in the order of their launches."""
    loaded = loader.load(nodes.model.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    graph = whole.extract(range(len(whole.nodes)), "whole")
    shapes = {info.name: tuple(info.type.shape) for info in graph.inputs}  # type: ignore[union-attr, arg-type]
    return [call.kernel for call in compile_partition(graph, shapes, target).calls]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_products_in_one_launch_agree_with_onnxruntime(options: dict[str, str]) -> None:
    nodes = make_layers(LAYERS[1:3] if options else LAYERS, 0)
    for mine, theirs in zip(nodes.run_with(options), nodes.run_elsewhere(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_products_in_one_launch_give_the_bits_of_products_in_their_own() -> None:
    """Of bytes, of floats for few rows, and of floats in private memory."""
    layers = (*LAYERS[:3], LAYERS[4], LAYERS[6])
    together, apart = (make_layers(layers, 4, is_shared=shared) for shared in (True, False))
    assert len(launches_of(together, BYTES)) < len(launches_of(apart, BYTES)) - 3 * len(layers)
    for mine, theirs in zip(together.run_with({}), apart.run_with({}), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("target", [CPU, BYTES], ids=["floats", "bytes"])
@pytest.mark.parametrize("rows", [1, 37])
def test_products_of_one_input_are_one_launch_and_a_gated_pair_too(
    rows: int, target: Target
) -> None:
    """The gate is read where it was written: it has the same number of columns, in whole panels."""
    nodes = gated_layer(rows, level=4)
    kinds = Counter(name.split("_")[0] for name in launches_of(nodes, target))
    pair = 2 if rows == 37 and target is BYTES else 1  # chunks of rows that overlap
    assert kinds == {"pointwise": 1, "weights4bit": pair}


def test_a_product_that_reads_more_than_an_item_wrote_is_a_launch_of_its_own() -> None:
    """The last panel overlaps the one before, so that two items write some columns."""
    nodes, layer = LayerSet(), Layer(rows=1, depth=64, widths=())
    x = nodes.add("Relu", [np.ones((1, 64), np.float32)])
    gate, up = (nodes.multiply(layer, x, 70) for _ in range(2))
    nodes.keep(nodes.add("Mul", [gate, up]))
    assert len(launches_of(nodes, CPU)) == 3
    chain = LayerSet()
    x = chain.add("Relu", [np.ones((1, 64), np.float32)])
    product = chain.multiply(layer, x, 64)
    chain.keep(chain.add("Add", [chain.multiply(layer, product, 64), x]))  # its input
    assert len(launches_of(chain, CPU)) == 3


def test_kernels_of_work_groups_keep_their_launches() -> None:
    assert len(launches_of(gated_layer(1), GPU)) == 1 + 3 + 2


def kernel(
    *operands: Storage, written: int = 1, in_place: tuple[tuple[int, int], ...] = (), **fields: Any
) -> Kernel:
    body = f"  const int id = {ITEM};"
    pairs = frozenset(in_place)
    return Kernel(body, operands, 4, written=written, joins=True, in_place=pairs, **fields)


def buffers(count: int) -> list[Storage]:
    return [Storage(8, "float32") for _ in range(count)]


def parts_of(kernels: list[Kernel]) -> list[int]:
    """How many kernels each launch has."""
    return [max(1, len(joined.parts)) for joined in join_launches(kernels)]


def test_a_kernel_is_not_moved_before_what_it_needs_or_destroys() -> None:
    x, a, b, c = buffers(4)
    assert parts_of([kernel(x, a), kernel(x, b)]) == [2]
    assert parts_of([kernel(x, a), kernel(a, b)]) == [1, 1]  # reads a result
    assert parts_of([kernel(x, a), kernel(x, a)]) == [1, 1]  # writes it again
    assert parts_of([kernel(x, a), kernel(x, x)]) == [1, 1]  # writes what the first one reads
    other = Kernel("", (b, c), 1)
    assert parts_of([kernel(x, a), other, kernel(x, buffers(1)[0])]) == [2, 1]
    assert parts_of([kernel(x, a), other, kernel(x, c, buffers(1)[0])]) == [1, 1, 1]
    assert parts_of([kernel(x, a), other, kernel(x, b)]) == [1, 1, 1]  # what `other` reads
    assert parts_of([kernel(x, a), Kernel("", (a, b), 1), kernel(x, c)]) == [2, 1]


def test_kernels_join_others_of_their_kind_that_read_the_same() -> None:
    x, y, a, b = buffers(4)
    assert parts_of([kernel(x, a), kernel(y, b)]) == [1, 1]
    assert parts_of([kernel(x, a, label="some_"), kernel(x, b, label="other_")]) == [1, 1]
    assert parts_of([kernel(x, a), replace(kernel(x, b), joins=False)]) == [1, 1]
    weight = Storage(8, "float32", np.zeros(8, np.float32))
    assert parts_of([kernel(weight, a), kernel(weight, b)]) == [1, 1]
    many = [kernel(x, *buffers(9)) for _ in range(6)]
    assert parts_of(many) == [(MOST_OPERANDS - 1) // 9, 3]


def test_a_kernel_follows_in_the_same_items_only_what_they_wrote() -> None:
    x, a, b = buffers(3)
    fields: dict[str, Any] = {"division": (1, 8), "elementwise": frozenset({1})}
    first = kernel(x, a, **fields)
    (joined,) = join_launches([first, kernel(x, a, b, **fields)])
    assert [part.first for part in joined.parts] == [0, 0]
    assert joined.tasks == 4
    assert joined.written_operands == (a, b)
    assert parts_of([first, kernel(x, a, b, division=(1, 8))]) == [1, 1]
    assert parts_of([first, kernel(x, a, b, division=(1, 9), elementwise=frozenset({1}))]) == [1, 1]
    assert parts_of([kernel(x, a), kernel(x, a, b, elementwise=frozenset({1}))]) == [1, 1]


def test_memory_that_another_part_reads_is_not_written_in_place() -> None:
    """Past keys that are past values, too: appending in place would destroy them."""
    x, past, other, a, b = buffers(5)
    pairs = ((1, 2),)
    (joined,) = join_launches(
        [kernel(x, past, a, in_place=pairs), kernel(x, other, b, in_place=pairs)]
    )
    assert joined.operands == (x, past, other, a, b)
    assert joined.in_place == {(1, 3), (2, 4)}
    (joined,) = join_launches(
        [kernel(x, past, a, in_place=pairs), kernel(x, past, b, in_place=pairs)]
    )
    assert joined.in_place == frozenset()


def test_keys_are_not_appended_in_place_to_a_cache_that_values_are_read_from(
    tmp_path: Path,
) -> None:
    nodes, random = NodeSet(), np.random.default_rng(57)
    query, keys, values, cache = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((1, 1, 64), (1, 1, 32), (1, 1, 32), (1, 2, 8, 16))
    )
    lengths, total = np.array([4], np.int32), np.array(8, np.int32)
    nodes.add(
        "GroupQueryAttention", [query, keys, values, cache, cache, lengths, total], (6,), 3,
        domain=CONTRIB, num_heads=4, kv_num_heads=2,
    )  # fmt: skip
    (node,) = nodes.model.graph.node
    past, node.input[4] = node.input[3], node.input[3]
    nodes.model.graph.input.remove(next(i for i in nodes.model.graph.input if i.name[-2:] == ".4"))
    feeds = {name: value for name, value in nodes.feeds.items() if not name.endswith(".4")}
    path = tmp_path / "model.onnx"
    path.write_bytes(nodes.model.SerializeToString())
    right = dict(zip(node.output, onnxruntime.InferenceSession(path).run(None, feeds), strict=True))
    with ort.InferenceSession(path, providers=[OPENCL]) as session:
        binding = session.io_binding()
        bound = ort.OrtValue.ortvalue_from_numpy(cache, "opencl", 0)
        for name, value in feeds.items():
            if name != past:
                binding.bind_cpu_input(name, value)
        binding.bind_ortvalue_input(past, bound)
        binding.bind_output(node.output[0])
        binding.bind_ortvalue_output(node.output[1], bound)
        binding.bind_output(node.output[2])
        session.run_with_iobinding(binding)
        found = dict(zip(node.output, (v.numpy() for v in binding.get_outputs()), strict=True))
    for name, theirs in right.items():
        valid = slice(None, 5 if theirs.ndim == 4 else None)  # positions of a cache
        np.testing.assert_allclose(
            found[name][..., valid, :], theirs[..., valid, :], rtol=1e-5, atol=1e-5
        )
