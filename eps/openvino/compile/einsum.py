"""Einsum of two tensors as a matrix product (ONNX Einsum-12).

Letters that both tensors and the output have are batches of the product; those that the output
lacks are summed. Of the others, the last of each tensor are its rows and columns, and the rest are
batches that the other tensor does not have. OpenVINO's own Einsum is not shown to be right: ONNX's
cases are of float64, which it does not compute.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType, TensorType
from eps.openvino.compile.node_writer import NodeWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Dim, GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "Einsum"
OLDEST_OPSET = 13
"""Opset of ai.onnx from which on Unsqueeze has its axes as an input."""
FLOATS = frozenset((DataType.FLOAT, DataType.FLOAT16))
"""Element types of which MatMul is shown to be right."""


@dataclass(frozen=True, slots=True)
class Product:
    """An Einsum of two tensors, by letters.

    Attributes:
        left: Of the first tensor.
        right: Of the second tensor.
        output: Of the output.
        batches: Of batches, those that one tensor lacks included, in the order of the output.
        row: Of the rows, from the first tensor.
        column: Of the columns, from the second tensor.
        summed: What is summed, in the order of the first tensor.
    """

    left: str
    right: str
    output: str
    batches: str
    row: str
    column: str
    summed: str


def read_product(node: Node, graph: Graph) -> Product | str:
    """The product that an Einsum is, or why it is none.

    Sizes of one letter are equal, as its uses say (ONNX Einsum-12): where they are not known before
    the run, another size there is an error. Several letters that are summed become one dimension,
    in which two wrong sizes could make up for each other: of those, one at most may be unknown.
    """
    equation = node.attributes["equation"].value if "equation" in node.attributes else b""
    text = equation.decode(errors="replace") if isinstance(equation, bytes) else ""
    text = text.replace(" ", "")
    terms, arrow, output = text.partition("->")
    names = terms.split(",")
    if len(names) != 2 or len(node.inputs) != 2 or not arrow:
        return f"Einsum {text} is not written out: it is not of two tensors to an output"
    left, right = names
    if not all(word.isalpha() and len(set(word)) == len(word) for word in (left, right, output)):
        return f"Einsum {text} is not written out: a term has a letter twice or none"
    if set(output) - set(left + right) or (set(left) ^ set(right)) - set(output):
        return f"Einsum {text} is not written out: it sums what one tensor alone has"
    summed = "".join(letter for letter in left if letter not in output)
    problem = _find_size_problem(node, graph, (left, right), summed)
    if problem:
        return f"Einsum {text} is not written out: {problem}"
    rows = [letter for letter in output if letter not in right]
    columns = [letter for letter in output if letter not in left]
    if not (rows and columns and summed):
        return f"Einsum {text} is not written out: it is not a matrix product"
    batches = "".join(letter for letter in output if letter not in (rows[-1], columns[-1]))
    return Product(left, right, output, batches, rows[-1], columns[-1], summed)


def _find_size_problem(node: Node, graph: Graph, letters: Sequence[str], summed: str) -> str:
    sizes: dict[str, list[Dim]] = {}
    for name, word in zip(node.inputs, letters, strict=True):
        shape = _shape_of(graph, name)
        if shape is None or len(shape) != len(word):
            return f"'{name}' is not known to have {len(word)} dimensions"
        for letter, dim in zip(word, shape, strict=True):
            sizes.setdefault(letter, []).append(dim)
    if any(len({dim for dim in dims if isinstance(dim, int)}) > 1 for dims in sizes.values()):
        return "a letter has two sizes"
    if sum(not sizes[letter][0] or len(set(sizes[letter])) > 1 for letter in summed) > 1:
        return "sizes of several letters that are summed are not known"
    if any(_element_type(graph, name) not in FLOATS for name in node.inputs):
        return "its tensors are not of float32 or float16"
    return ""


def _shape_of(graph: Graph, name: str) -> tuple[Dim, ...] | None:
    constant, value_type = graph.constant(name), graph.type_of(name)
    if constant is not None:
        return constant.dims
    return value_type.shape if isinstance(value_type, TensorType) else None


def _element_type(graph: Graph, name: str) -> int | None:
    constant, value_type = graph.constant(name), graph.type_of(name)
    if constant is not None:
        return constant.data_type
    return value_type.elem_type if isinstance(value_type, TensorType) else None


def write_out_products(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with matrix products in place of Einsum; `graph` is the same with its types."""
    writer = NodeWriter(definition, "einsum")
    for node in definition.nodes:
        product = read_product(node, graph) if _is_einsum(node) else ""
        if isinstance(product, str):
            writer.nodes.append(node)
        else:
            _write_product(node, product, graph, writer)
    return writer.finish(definition) if writer.nodes != list(definition.nodes) else definition


def _is_einsum(node: Node) -> bool:
    return node.op_type == OPERATOR and node.domain == ""


def _write_product(node: Node, product: Product, graph: Graph, writer: NodeWriter) -> None:
    columns = [letter for letter in product.right if letter not in product.left]
    sizes = dict(zip(product.right, _shape_of(graph, node.inputs[1]) or (), strict=True))
    widths = [size for letter in columns if isinstance(size := sizes[letter], int)]
    batched = any(letter in product.left for letter in product.right if letter in product.output)
    if batched or len(columns) == 1 or len(widths) < len(columns):
        made, letters = _write_batches(node, product, writer)
    else:
        made, letters = _write_matrix(
            node, product, dict(zip(columns, widths, strict=True)), writer
        )
    perm = tuple(letters.index(letter) for letter in product.output)
    writer.add("Transpose", made, output=node.outputs[0], perm=perm)


def _write_batches(node: Node, product: Product, writer: NodeWriter) -> tuple[str, str]:
    """A product that broadcasts over the batches; its name, and its letters."""
    (left, right), batches = node.inputs, product.batches
    mine = "".join(letter for letter in batches if letter in product.left)
    first = _transpose(writer, left, product.left, mine + product.row + product.summed)
    first = _merge_last(writer, first, len(mine) + 1, len(product.summed))
    theirs = "".join(letter for letter in batches if letter in product.right)
    second = _transpose(writer, right, product.right, theirs + product.column + product.summed)
    second = _merge_last(writer, second, len(theirs) + 1, len(product.summed))
    swapped = (*range(len(theirs)), len(theirs) + 1, len(theirs))
    second = writer.add("Transpose", second, perm=swapped)
    operands = []
    for name, letters in ((first, product.left), (second, product.right)):
        lacking = [place for place, letter in enumerate(batches) if letter not in letters]
        operands.append(
            writer.add("Unsqueeze", name, writer.integers(*lacking)) if lacking else name
        )
    return writer.add("MatMul", *operands), batches + product.row + product.column


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


def _merge_last(writer: NodeWriter, name: str, before: int, count: int) -> str:
    """A value with its last `count` dimensions, which `before` others precede, as one."""
    if count == 1:
        return name
    return writer.add("Reshape", name, writer.integers(*(0 for _ in range(before)), -1))
