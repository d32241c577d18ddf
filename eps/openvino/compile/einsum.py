"""Writes Einsum out as a matrix product, a product of elements or a Transpose (ONNX Einsum-12).

eps/openvino/support/einsum_forms.py says which, and when.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.einsum_forms import Permutation, Product, read_einsum
from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "Einsum"


def write_out_einsum(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` without such Einsum; `graph` is the same with its types."""
    writer = NodeWriter(definition, "einsum")
    for node in definition.nodes:
        form = read_einsum(node, graph) if _is_einsum(node) else ""
        if isinstance(form, Permutation):
            _write_permuted(node, node.inputs[0], form.letters, form.output, writer)
        elif isinstance(form, Product):
            made, letters = _write_product(node, form, graph, writer)
            _write_permuted(node, made, letters, form.output, writer)
        else:
            writer.nodes.append(node)
    return writer.finish(definition) if writer.nodes != list(definition.nodes) else definition


def _is_einsum(node: Node) -> bool:
    return node.op_type == OPERATOR and node.domain == ""


def _write_permuted(node: Node, name: str, letters: str, order: str, writer: NodeWriter) -> None:
    """The output of the Einsum, from a value with the same letters."""
    perm = tuple(letters.index(letter) for letter in order)
    writer.add("Transpose", name, output=node.outputs[0], perm=perm)


def _write_product(
    node: Node, product: Product, graph: Graph, writer: NodeWriter
) -> tuple[str, str]:
    """A value with the letters of the output, in another order; its name, and its letters."""
    if not product.summed:
        return _write_elements(node, product, writer)
    columns = [letter for letter in product.right if letter not in product.left]
    sizes = dict(zip(product.right, shape_of(graph, node.inputs[1]) or (), strict=True))
    widths = [size for letter in columns if isinstance(size := sizes[letter], int)]
    batched = any(letter in product.left for letter in product.right if letter in product.output)
    if batched or len(columns) < 2 or len(widths) < len(columns):
        return _write_batches(node, product, writer)
    return _write_matrix(node, product, dict(zip(columns, widths, strict=True)), writer)


def _write_elements(node: Node, product: Product, writer: NodeWriter) -> tuple[str, str]:
    """A product of elements, which broadcasts over letters that one tensor lacks."""
    output, operands = product.output, []
    for name, letters in zip(node.inputs, (product.left, product.right), strict=True):
        mine = "".join(letter for letter in output if letter in letters)
        operand = _transpose(writer, name, letters, mine)
        lacking = [place for place, letter in enumerate(output) if letter not in letters]
        operands.append(_unsqueeze(writer, operand, lacking))
    return writer.add("Mul", *operands), output


def _write_batches(node: Node, product: Product, writer: NodeWriter) -> tuple[str, str]:
    """A product that broadcasts over the batches, and has one row or column if it lacks these."""
    (left, right), batches = node.inputs, product.batches
    mine = "".join(letter for letter in batches if letter in product.left)
    first = _transpose(writer, left, product.left, mine + product.row + product.summed)
    first = _merge_last(writer, first, len(mine + product.row), len(product.summed))
    first = _unsqueeze(writer, first, [] if product.row else [len(mine)])
    theirs = "".join(letter for letter in batches if letter in product.right)
    second = _transpose(writer, right, product.right, theirs + product.column + product.summed)
    second = _merge_last(writer, second, len(theirs + product.column), len(product.summed))
    second = _unsqueeze(writer, second, [] if product.column else [len(theirs)])
    swapped = (*range(len(theirs)), len(theirs) + 1, len(theirs))
    second = writer.add("Transpose", second, perm=swapped)
    operands = []
    for name, letters in ((first, product.left), (second, product.right)):
        lacking = [place for place, letter in enumerate(batches) if letter not in letters]
        operands.append(_unsqueeze(writer, name, lacking))
    made = writer.add("MatMul", *operands)
    added = [len(batches)] * (not product.row) + [len(batches) + 1] * (not product.column)
    if added:
        made = writer.add("Squeeze", made, writer.integers(*added))
    return made, batches + product.row + product.column


def _write_matrix(
    node: Node, product: Product, widths: Mapping[str, int], writer: NodeWriter
) -> tuple[str, str]:
    """A product with one matrix, of all columns at once; its name, and its letters.

    Args:
        node: The Einsum.
        product: It has no batches of both tensors.
        widths: Size by letter of the columns.
        writer: Gets the nodes.
    """
    (left, right), columns = node.inputs, "".join(widths)
    rows = "".join(letter for letter in product.left if letter in product.output)
    first = _transpose(writer, left, product.left, rows + product.summed)
    first = _merge_last(writer, first, len(rows), len(product.summed))
    second = _transpose(writer, right, product.right, product.summed + columns)
    second = writer.add("Reshape", second, writer.integers(-1, prod(widths.values())))
    made = writer.add("MatMul", first, second)
    shape = writer.integers(*(0 for _ in rows), *widths.values())
    return writer.add("Reshape", made, shape), rows + columns


def _transpose(writer: NodeWriter, name: str, letters: str, order: str) -> str:
    perm = tuple(letters.index(letter) for letter in order)
    return writer.add("Transpose", name, perm=perm) if order != letters else name


def _unsqueeze(writer: NodeWriter, name: str, axes: list[int]) -> str:
    return writer.add("Unsqueeze", name, writer.integers(*axes)) if axes else name


def _merge_last(writer: NodeWriter, name: str, before: int, count: int) -> str:
    """A value with its last `count` dimensions, which `before` others precede, as one."""
    if count == 1:
        return name
    return writer.add("Reshape", name, writer.integers(*(0 for _ in range(before)), -1))
