"""An EPContext node as a checked value: com.microsoft::EPContext, version 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import Attribute, AttributeType, Node

if TYPE_CHECKING:
    from collections.abc import Mapping

OP_TYPE = "EPContext"
DOMAIN = "com.microsoft"
_TEXTS = (
    "ep_sdk_version",
    "hardware_architecture",
    "notes",
    "onnx_model_filename",
    "partition_name",
    "source",
)
_NUMBERS = {"embed_mode": 1, "main_context": 1, "max_size": 0}
_PAYLOAD = "ep_cache_context"
_KNOWN = frozenset({*_TEXTS, *_NUMBERS, _PAYLOAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class EpContextNode:
    """The ten attributes of an EPContext node, its inputs and outputs.

    Attributes:
        main_context: Whether the node points to a context; otherwise its graph is in the
            context of another node of the same source.
        embed_mode: Whether `ep_cache_context` is the context itself, not a path to it.
        ep_cache_context: The context, a view of the model's bytes; or its path relative to
            the model, as UTF-8. Empty for a node that points to nothing.
        max_size: Of a context, in bytes; what it is for is the EP's business.
        extra: Further attributes, which the schema allows.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    source: str = ""
    main_context: bool = True
    embed_mode: bool = True
    ep_cache_context: bytes | memoryview = b""
    ep_sdk_version: str = ""
    hardware_architecture: str = ""
    onnx_model_filename: str = ""
    partition_name: str = ""
    notes: str = ""
    max_size: int = 0
    extra: Mapping[str, Attribute] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what no schema checks.

        Raises:
            FormatError: No outputs, an input or output without name, an impossible size, a
                main node without context, a known attribute among the further ones.
        """
        where = f"EPContext node '{self.name}'"
        known = sorted(_KNOWN & self.extra.keys())
        if known:
            raise FormatError(f"{where}.extra", ", ".join(known), "attributes not in the schema")
        if not self.outputs:
            raise FormatError(f"{where}.outputs", "none", "at least one")
        if not all((*self.inputs, *self.outputs)):
            raise FormatError(f"{where}.inputs", "one without a name", "no optional ones")
        if not 0 <= self.max_size < 1 << 63:
            raise FormatError(f"{where}.max_size", str(self.max_size), "an int64, 0 or more")
        if self.main_context and not self.ep_cache_context:
            raise FormatError(
                f"{where}.ep_cache_context", "empty", "a context or a path (main_context is 1)"
            )

    @property
    def payload_path(self) -> str:
        """`ep_cache_context` as a path.

        Raises:
            FormatError: It is not UTF-8.
        """
        try:
            return str(self.ep_cache_context, "utf-8")
        except UnicodeDecodeError as exc:
            raise FormatError(
                f"EPContext node '{self.name}'.ep_cache_context", "not UTF-8", "a path"
            ) from exc

    @classmethod
    def from_node(cls, node: Node) -> EpContextNode:
        """Read a node as its schema and the EPs in the field write it.

        Raises:
            FormatError: Another operator, or an attribute of the wrong type or value.
        """
        where = f"EPContext node '{node.name}'"
        if node.op_type != OP_TYPE or node.domain != DOMAIN:
            raise FormatError(where, f"{node.domain}::{node.op_type}", f"{DOMAIN}::{OP_TYPE}")
        attributes = node.attributes
        numbers = {
            key: _number(attributes, key, default, where) for key, default in _NUMBERS.items()
        }
        for key in ("embed_mode", "main_context"):
            if numbers[key] not in (0, 1):
                raise FormatError(f"{where}.{key}", str(numbers[key]), "0 or 1")
        return cls(
            name=node.name,
            inputs=node.inputs,
            outputs=node.outputs,
            main_context=bool(numbers["main_context"]),
            embed_mode=bool(numbers["embed_mode"]),
            max_size=numbers["max_size"],
            ep_cache_context=_data(attributes, _PAYLOAD, where),
            extra={key: a for key, a in attributes.items() if key not in _KNOWN},
            **{key: _text(attributes, key, where) for key in _TEXTS},
        )

    def to_node(self) -> Node:
        """The node with its attributes by name; empty optional texts are left out."""
        attributes = [
            Attribute("embed_mode", AttributeType.INT, int(self.embed_mode)),
            Attribute("main_context", AttributeType.INT, int(self.main_context)),
            Attribute("max_size", AttributeType.INT, self.max_size),
        ]
        if self.ep_cache_context:
            attributes.append(Attribute(_PAYLOAD, AttributeType.STRING, self.ep_cache_context))
        for key in _TEXTS:
            text: str = getattr(self, key)
            if text:
                attributes.append(Attribute(key, AttributeType.STRING, text.encode()))
        attributes += self.extra.values()
        return Node(
            op_type=OP_TYPE,
            domain=DOMAIN,
            name=self.name,
            inputs=self.inputs,
            outputs=self.outputs,
            attributes={a.name: a for a in sorted(attributes, key=lambda a: a.name)},
        )


def _number(attributes: Mapping[str, Attribute], key: str, default: int, where: str) -> int:
    attribute = attributes.get(key)
    if attribute is None:
        return default
    if attribute.type != AttributeType.INT or not isinstance(attribute.value, int):
        raise FormatError(f"{where}.{key}", attribute.type.name, "INT")
    return attribute.value


def _data(attributes: Mapping[str, Attribute], key: str, where: str) -> bytes | memoryview:
    attribute = attributes.get(key)
    if attribute is None:
        return b""
    if attribute.type != AttributeType.STRING or not isinstance(
        attribute.value, bytes | memoryview
    ):
        raise FormatError(f"{where}.{key}", attribute.type.name, "STRING")
    return attribute.value


def _text(attributes: Mapping[str, Attribute], key: str, where: str) -> str:
    data = _data(attributes, key, where)
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as exc:
        raise FormatError(f"{where}.{key}", "bytes that are not UTF-8", "text") from exc
