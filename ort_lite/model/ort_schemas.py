"""Operators with ONNX Runtime's schemas, as a file in the ORT format records them.

Those of ONNX's own domains are onnx's. Those of com.microsoft, and which operators ONNX Runtime
replaces by the function of their schema or computes in float32 because its CPU EP has no kernel,
are in ort_schemas.json;
`python tests/parity/record_ort_schemas.py` writes it, with onnxruntime installed.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_formats.decode_attribute import decode_attribute
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import Attribute, AttributeType
from ctx_formats.ort_operators import OrtOperator
from ort_lite.extension_module import onnx_extension
from ort_lite.kernel_type_str import places_of_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.kernel_types import Places
    from ctx_formats.onnx_model import GraphDef

FILE = Path(__file__).with_name("ort_schemas.json")
CONTRIB = "com.microsoft"
_OPEN_END = (1 << 31) - 1
_VARIADIC = 2
"""OpSchema.FormalParameterOption.Variadic of onnx."""


@dataclass(frozen=True, slots=True)
class OrtSchema:
    """An operator version.

    Attributes:
        operator: For the writer.
        defaults: Attributes of a node that leaves them out.
        has_function: Whether its schema gives a function, fixed or depending on the node.
    """

    operator: OrtOperator
    defaults: Mapping[str, Attribute]
    has_function: bool = False


def find_ort_schema(domain: str, op_type: str, opset: int) -> OrtSchema | None:
    """The newest schema not newer than `opset`; None if ONNX Runtime has none."""
    if domain == CONTRIB:
        row = _load_table()["operators"].get(op_type)
        return None if row is None else _contrib_schema(row)
    defs = onnx_extension().defs
    try:
        return _onnx_schema(defs.get_schema(op_type, opset, domain))
    except defs.SchemaError:
        return None


def is_inlined(domain: str, op_type: str, since_version: int) -> bool:
    """Whether ONNX Runtime's CPU EP runs the operator only as the function of its schema."""
    return [domain, op_type, since_version] in _load_table()["inlined"]


def has_half_kernel(domain: str, op_type: str, since_version: int) -> bool:
    """Whether ONNX Runtime's CPU EP has a kernel of the operator for float16."""
    ranges = _half_ranges().get((domain, op_type), ())
    return any(first == since_version or first <= since_version <= last for first, last in ranges)


@cache
def _half_ranges() -> dict[tuple[str, str], list[tuple[int, int]]]:
    ranges: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for domain, op_type, first, last in _load_table()["half"]:
        # An open end matches its start alone: kernel_registry.cc VerifyVersion.
        end = first if last == _OPEN_END else last
        ranges.setdefault((domain, op_type), []).append((first, end))
    return ranges


@cache
def _load_table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(FILE.read_bytes())
    return table


def _contrib_schema(row: list[Any]) -> OrtSchema:
    """A row: version, names to signed places (-1 is output 0), inputs, variadic, defaults."""
    since, places, inputs, variadic, defaults = row
    decoded: dict[str, Places] = {
        name: tuple((at >= 0, at if at >= 0 else -1 - at) for at in signed)
        for name, signed in places.items()
    }
    operator = OrtOperator(
        since_version=since, places=decoded, formal_inputs=inputs, is_variadic=variadic
    )
    return OrtSchema(operator, {name: _attribute(name, *d) for name, d in defaults.items()})


def _attribute(name: str, kind: int, value: Any) -> Attribute:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        value = value.encode()
    elif isinstance(value, list):
        value = tuple(item.encode() if isinstance(item, str) else item for item in value)
    return Attribute(name, AttributeType(kind), value)


def _onnx_schema(op_schema: Any) -> OrtSchema:  # noqa: ANN401 - the extension has no types
    names = frozenset(c.type_param_str for c in op_schema.type_constraints)
    places = places_of_schema(op_schema.inputs, op_schema.outputs, names)
    inputs = op_schema.inputs
    operator = OrtOperator(
        since_version=op_schema.since_version,
        places={n: tuple((p.is_input, p.index) for p in listed) for n, listed in places.items()},
        formal_inputs=len(inputs),
        is_variadic=bool(inputs) and inputs[-1].option.value == _VARIADIC,
    )
    defaults = {}
    for name, attribute in op_schema.attributes.items():
        default = _decode_default(attribute._default_value)  # noqa: SLF001 - its bytes; the public name needs onnx
        if default is not None:
            defaults[name] = default
    has_function = op_schema.has_function or op_schema.has_context_dependent_function
    return OrtSchema(operator, defaults, bool(has_function))


def _decode_default(encoded: bytes) -> Attribute | None:
    """The default in an AttributeProto's bytes; None if absent."""
    if not encoded:
        return None
    view = memoryview(encoded)
    attribute = decode_attribute(view, 0, len(view), _refuse_graph)
    return None if attribute.type is AttributeType.UNDEFINED else attribute


def _refuse_graph(start: int, end: int) -> GraphDef:
    raise FormatError("default", f"a graph in bytes {start} to {end}", "a number, text or tensor")
