"""A recorded case: a node, or a model as text, with inputs that are drawn from its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser
from parity.node_cases import ORT_IR_VERSION, NodeCase
from parity.realistic.drawn import Drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parity.realistic.drawn import Array

Given = Drawn | np.ndarray | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCase:
    """What is run, and how near to the record its results must be.

    Attributes:
        what: Tells cases of one operator apart.
        inputs: In order; None for an omitted one.
        constants: Which inputs are initializers of the node's model.
        outputs: How many.
        rtol: Of the largest magnitude of an output, elementwise; 0 is bit for bit.
        steps: Whole numbers may differ by so much, in 1 % of an output.
        text: A model in onnx.parser's form instead of a node.
    """

    op: str
    what: str = ""
    inputs: Sequence[Given] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    domain_version: int = 1
    opset: int = 21
    constants: Sequence[int] = ()
    outputs: int = 1
    rtol: float = 2e-6
    steps: int = 0
    text: str = ""

    @property
    def name(self) -> str:
        """What the case is recorded under."""
        where = f"{self.domain}.{self.op}-{self.domain_version}"
        return f"{where if self.domain else f'{self.op}-{self.opset}'} {self.what}".strip()

    def drawn(self) -> list[Array | None]:
        """The inputs."""
        return [
            given.array(f"{self.name}/{i}") if isinstance(given, Drawn) else given
            for i, given in enumerate(self.inputs)
        ]

    def model_and_feed(self, inputs: Sequence[Array | None]) -> tuple[bytes, dict[str, Array]]:
        """What a session takes."""
        if self.text:
            model = onnx.parser.parse_model(self.text)
            names = [info.name for info in model.graph.input]
            feed = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
            return model.SerializeToString(), feed
        node = NodeCase(
            name=self.name,
            op=self.op,
            inputs=inputs,
            attributes=self.attributes,
            opset=self.opset,
            constants=self.constants,
            outputs=self.outputs,
            domain=self.domain,
            domain_version=self.domain_version,
        )
        return node.model(), node.feed()


def node(op: str, *inputs: Given, what: str = "", **options: Any) -> RecordedCase:
    """A case of one node; options that RecordedCase does not know are attributes."""
    known = {k: options.pop(k) for k in tuple(options) if k in _OPTIONS}
    return RecordedCase(op=op, what=what, inputs=inputs, attributes=options, **known)


_OPTIONS = frozenset(("constants", "domain", "domain_version", "opset", "outputs", "rtol", "steps"))


def model(op: str, body: str, *inputs: Given, opset: int = 21, **options: Any) -> RecordedCase:
    """A case of a graph in onnx.parser's form, `op` being what it is about."""
    imports = f'<ir_version: {ORT_IR_VERSION}, opset_import: ["" : {opset}, "ai.onnx.ml" : 3]>'
    return RecordedCase(op=op, inputs=inputs, text=f"{imports}\n{body}", opset=opset, **options)
