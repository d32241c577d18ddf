"""Which Einsum OpenVINO gets, and as what (ONNX Einsum-12).

OpenVINO's own Einsum is not shown to be right: ONNX's cases are of float64, which it does not
compute. eps/openvino/compile/einsum.py writes others in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType
from eps.openvino.support.node_facts import element_type_of, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, Node
    from ort_lite.ep import Graph

OLDEST_OPSET = 13
"""Opset of ai.onnx from which on Unsqueeze and Squeeze have their axes as an input."""
FLOATS = frozenset((DataType.FLOAT, DataType.FLOAT16))
"""Element types of which MatMul is shown to be right."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """An Einsum of one tensor that sums nothing.

    Attributes:
        letters: Of the tensor.
        output: The same in the order of the output.
    """

    letters: str
    output: str


@dataclass(frozen=True, slots=True)
class Product:
    """An Einsum of two tensors, by letters.

    Letters that both tensors and the output have are batches of the product; those that the output
    lacks are summed. Of the others, the last of each tensor are its rows and columns, and the rest
    are batches that the other tensor does not have.

    Attributes:
        left: Of the first tensor.
        right: Of the second tensor.
        output: Of the output.
        batches: Of batches, those that one tensor lacks included, in the order of the output.
        row: Of the rows, from the first tensor; "" if it has none.
        column: Of the columns, from the second tensor; "" if it has none.
        summed: What is summed, in the order of the first tensor; "" for a product of elements.
    """

    left: str
    right: str
    output: str
    batches: str
    row: str
    column: str
    summed: str


def read_einsum(node: Node, graph: Graph) -> Product | Permutation | str:
    """What an Einsum can be written as, or why it is left.

    Sizes of one letter are equal, as its uses say (ONNX Einsum-12): where they are not known before
    the run, another size there is an error. Several letters that are summed become one dimension,
    in which two wrong sizes could make up for each other: of those, one at most may be unknown.
    """
    equation = node.attributes["equation"].value if "equation" in node.attributes else b""
    text = equation.decode(errors="replace") if isinstance(equation, bytes) else ""
    text = text.replace(" ", "")
    terms, arrow, output = text.partition("->")
    names = terms.split(",")
    problem = _find_problem(node, graph, names, output if arrow else None)
    if problem:
        return f"Einsum {text} is not written out: {problem}"
    if len(names) == 1:
        return Permutation(names[0], output)
    left, right = names
    summed = "".join(letter for letter in left if letter not in output)
    row = "".join(letter for letter in output if letter not in right)[-1:]
    column = "".join(letter for letter in output if letter not in left)[-1:]
    batches = "".join(letter for letter in output if letter not in (row, column))
    return Product(left, right, output, batches, row, column, summed)


def _find_problem(node: Node, graph: Graph, terms: Sequence[str], output: str | None) -> str:
    if output is None or len(terms) > 2 or len(node.inputs) != len(terms):
        return "it is not of one or two tensors to an output"
    words = (*terms, output) if output else terms
    if not all(word.isalpha() and len(set(word)) == len(word) for word in words):
        return "a term has a letter twice or none"
    letters = "".join(terms)
    if set(output) - set(letters):
        return "its output has a letter of no tensor"
    if any(letters.count(letter) == 1 and letter not in output for letter in letters):
        return "it sums what one tensor alone has"
    if any(element_type_of(graph, name) not in FLOATS for name in node.inputs):
        return "its tensors are not of float32 or float16"
    return _find_size_problem(node, graph, terms, output)


def _find_size_problem(node: Node, graph: Graph, terms: Sequence[str], output: str) -> str:
    sizes: dict[str, list[Dim]] = {}
    for name, word in zip(node.inputs, terms, strict=True):
        shape = shape_of(graph, name)
        if shape is None or len(shape) != len(word):
            return f"'{name}' is not known to have {len(word)} dimensions"
        for letter, dim in zip(word, shape, strict=True):
            sizes.setdefault(letter, []).append(dim)
    if any(len({dim for dim in dims if isinstance(dim, int)}) > 1 for dims in sizes.values()):
        return "a letter has two sizes"
    summed = [dims for letter, dims in sizes.items() if letter not in output]
    if sum(not dims[0] or len(set(dims)) > 1 for dims in summed) > 1:
        return "sizes of several letters that are summed are not known"
    return ""
