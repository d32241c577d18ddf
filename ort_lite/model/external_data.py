"""Initializers whose bytes lie in other files, mapped in place of being read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import replace
from ctx_formats.mapped_file import MappedFile
from ctx_formats.onnx_model import AttributeType, ExternalData, GraphDef, Tensor
from ctx_formats.safe_path import resolve_payload
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctx_formats.onnx_model import Node


class ExternalFiles:
    """The data files of one model, each mapped once; `close` unmaps them.

    Views handed out stay valid after `close` for as long as somebody holds them.

    Attributes:
        origins: Where each tensor lay that was attached, by its name.
    """

    def __init__(
        self, base: str, model_path: str | None, in_memory: Mapping[str, memoryview] | None = None
    ) -> None:
        """Files in `base`, which locations are relative to and must stay inside.

        Args:
            base: The folder.
            model_path: Of the model.
            in_memory: What to use instead of files, by location, if not empty.
        """
        self._base = base
        self._in_memory = in_memory or {}
        self._model_path = model_path
        self._maps: dict[str, MappedFile] = {}
        self.origins: dict[str, ExternalData] = {}

    def attach(self, graph: GraphDef) -> GraphDef:
        """`graph` with every external tensor's data replaced by a view of the mapped file.

        Raises:
            Fail: A location leaves the folder or is not there, or its bytes do not fit the
                tensor; the texts are those of ONNX Runtime.
        """
        initializers = {n: self._attached(t) for n, t in graph.initializers.items()}
        nodes = tuple(self._attached_node(node) for node in graph.nodes)
        return replace(graph, initializers=initializers, nodes=nodes)

    def files(self) -> Iterator[tuple[str, MappedFile]]:
        """Locations and files in use, in the order of their names."""
        for location in sorted(self._maps):
            yield location, self._maps[location]

    def views(self) -> Iterator[memoryview]:
        """The bytes of every data file in use, in the order of their names."""
        for location in sorted(self._in_memory):
            yield self._in_memory[location]
        for location in sorted(self._maps):
            yield self._maps[location].view

    def close(self) -> None:
        """Let go of the maps."""
        for mapped in self._maps.values():
            mapped.close()
        self._maps.clear()

    def _attached_node(self, node: Node) -> Node:
        changed = {}
        for name, attribute in node.attributes.items():
            value = attribute.value
            if isinstance(value, Tensor) and isinstance(value.data, ExternalData):
                changed[name] = replace(attribute, value=self._attached(value))
            elif attribute.type == AttributeType.GRAPH and isinstance(value, GraphDef):
                changed[name] = replace(attribute, value=self.attach(value))
            elif attribute.type == AttributeType.GRAPHS and isinstance(value, tuple):
                changed[name] = replace(attribute, value=tuple(map(self.attach, value)))
        return replace(node, attributes={**node.attributes, **changed}) if changed else node

    def _attached(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor.data, ExternalData):
            return tensor
        where = tensor.data
        view = self._view(tensor.name, where.location)
        self.origins[tensor.name] = where
        from ctx_formats.tensor_size import tensor_bytes  # noqa: PLC0415 - few models need it

        size = tensor_bytes(tensor.data_type, tensor.dims)
        if where.length is not None and where.length != size:
            raise Fail(
                f"External initializer: {tensor.name}: its shape and type take {size} bytes, "
                f"external_data says {where.length}"
            )
        if where.offset < 0 or where.offset + size > len(view):
            raise Fail(
                f"External initializer: {tensor.name} offset: {where.offset} size to read: "
                f"{size} given file_length: {len(view)} are out of bounds or can not be read in "
                f"full. File: {where.location}"
            )
        return replace(tensor, data=view[where.offset : where.offset + size])

    def _given(self, location: str) -> memoryview:
        view = self._in_memory.get(location)
        if view is None:
            raise Fail(f"External file: {location} not found from the table user provided.")
        return view

    def _view(self, tensor: str, location: str) -> memoryview:
        if self._in_memory:
            return self._given(location)
        mapped = self._maps.get(location)
        if mapped is None:
            try:
                path = resolve_payload(self._base, location, model_path=self._model_path)
                mapped = MappedFile(path, follow_symlink=False)
            except FormatError as exc:
                # ONNX Runtime's words for a path that must not be read, which people match on.
                unsafe = exc.reason == Reason.UNSAFE_PATH
                said = "External data path validation failed. " if unsafe else ""
                raise Fail(f"{said}External data of initializer '{tensor}': {exc}") from exc
            self._maps[location] = mapped
        return mapped.view
