"""Initializers whose bytes are stored in other files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctx_formats.errors import FileChangedError, FormatError, Reason
from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import ExternalData, GraphDef, Tensor
from ctx_formats.safe_path import resolve_payload
from ort_lite.model.bodies import map_bodies
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ctx_formats.onnx_model import Node
    from ort_lite.model.external_file import ExternalFile
    from ort_lite.trust.verification import Proof


REMEDY = (
    ": copy it there, or name its folder with session.model_external_initializers_file_folder_path"
)
"""End of the error on a file of weights that is absent."""


class ExternalFiles:
    """The data files of one model, each opened once; `close` closes them.

    Views handed out stay valid after `close` for as long as somebody holds them.

    Attributes:
        origins: Where each tensor lay that was attached, by its name.
        mapped: Whether they are mapped rather than read.
    """

    def __init__(
        self,
        base: str,
        model_path: str | None,
        in_memory: Mapping[str, memoryview] | None = None,
        named: str = "",
        proof: Proof | None = None,
        *,
        mapped: bool = False,
    ) -> None:
        """Files in `base`, which locations are relative to and must stay inside.

        Args:
            base: The folder.
            model_path: Of the model.
            in_memory: What to use instead of files, by location, if not empty.
            named: The folder as the model's path names it, which symlinks may be in.
            proof: Of the signature that covers the files, where the session asked for one.
            mapped: Whether files are mapped rather than read, unless there is a proof: nobody may
                write to them then.
        """
        self._proof = proof
        self.mapped = mapped and proof is None
        self._base = base
        self._named = named or base
        self._in_memory = in_memory or {}
        self._model_path = model_path
        self._files: dict[str, ExternalFile] = {}
        self.origins: dict[str, ExternalData] = {}

    def attach(self, graph: GraphDef) -> GraphDef:
        """`graph` with every external tensor's data replaced by its bytes.

        Raises:
            Fail: A location leaves the folder or is not there, or its bytes do not fit the
                tensor; the texts are those of ONNX Runtime.
            FileChangedError: A file has become shorter meanwhile.
            InvalidGraph: Reason untrusted; a file is not what the model's signature covers.
        """
        spans: dict[str, set[tuple[int, int]]] = {}
        _each_external(graph, lambda tensor: self._note(tensor, spans))
        for location, file in self._files.items():
            try:
                file.read(spans[location])
            except FileChangedError:
                raise
            except FormatError as exc:
                raise Fail(f"External data in '{location}': {exc}") from exc
        if self._proof is not None:
            self._require_proven(self._proof, spans)
        return _each_external(graph, self._attach)

    def find_problems(self, graph: GraphDef) -> dict[str, str]:
        """Problem of each data file that `graph` names, by location; reads no weights.

        "" for a file that has the bytes of all its tensors; otherwise the error that `attach`
        raises for the first tensor that lacks them.
        """
        problems: dict[str, str] = {}

        def note(tensor: Tensor) -> Tensor:
            location = _place(tensor).location
            if not problems.get(location):
                try:
                    self._note(tensor, {})
                    problems[location] = ""
                except Fail as exc:
                    problems[location] = exc.message
            return tensor

        _each_external(graph, note)
        return problems

    def files(self) -> Iterator[tuple[str, ExternalFile]]:
        """Locations and files in use, in the order of their names."""
        for location in sorted(self._files):
            yield location, self._files[location]

    def pieces(self) -> Iterator[memoryview]:
        """The bytes of every data file in use, in the order of their names.

        Raises:
            FileChangedError: A file is no longer the one that was read.
        """
        for location in sorted(self._in_memory):
            yield self._in_memory[location]
        for _, file in self.files():
            yield from file.pieces()

    def require_unchanged(self) -> None:
        """Compare the files with what they were when they were opened.

        Raises:
            FileChangedError: Somebody wrote to one or replaced it.
        """
        for file in self._files.values():
            file.require_unchanged(in_place=True)

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _require_proven(self, proof: Proof, locations: Iterable[str]) -> None:
        """Compare every data file in use, all of it, with the model's signature."""
        for location in locations:
            try:
                if self._in_memory:
                    proof.require(location, [self._bytes_in_memory(location)])
                else:
                    proof.require(location, self._files[location].pieces())
            except FileChangedError:
                raise
            except FormatError as exc:
                from ort_lite.trust.verification import untrusted_error  # noqa: PLC0415 - lazy: rare

                raise untrusted_error(f"External data: {exc}") from exc

    def _note(self, tensor: Tensor, spans: dict[str, set[tuple[int, int]]]) -> Tensor:
        """Open the tensor's file, and add the tensor's span in it to `spans`."""
        where = _place(tensor)
        length = self._length(tensor.name, where.location)
        self.origins[tensor.name] = where
        from ctx_formats.tensor_size import tensor_bytes  # noqa: PLC0415 - lazy: reload

        size = tensor_bytes(tensor.data_type, tensor.dims)
        if where.length is not None and where.length != size:
            raise Fail(
                f"External initializer: {tensor.name}: its shape and type take {size} bytes, "
                f"external_data says {where.length}"
            )
        if where.offset < 0 or where.offset + size > length:
            raise Fail(
                f"External initializer: {tensor.name} offset: {where.offset} size to read: "
                f"{size} given file_length: {length} are out of bounds or can not be read in "
                f"full. File: {where.location}"
            )
        spans.setdefault(where.location, set()).add((where.offset, where.offset + size))
        return tensor

    def _attach(self, tensor: Tensor) -> Tensor:
        from ctx_formats.tensor_size import tensor_bytes  # noqa: PLC0415 - lazy: reload

        where = _place(tensor)
        span = where.offset, where.offset + tensor_bytes(tensor.data_type, tensor.dims)
        if self._in_memory:
            return replace(tensor, data=self._bytes_in_memory(where.location)[slice(*span)])
        return replace(tensor, data=self._files[where.location].view(*span))

    def _bytes_in_memory(self, location: str) -> memoryview:
        view = self._in_memory.get(location)
        if view is None:
            raise Fail(f"External file: {location} not found from the table user provided.")
        return view

    def _length(self, tensor: str, location: str) -> int:
        """Bytes of a data file, which is opened now if it has not been yet."""
        if self._in_memory:
            return len(self._bytes_in_memory(location))
        file = self._files.get(location)
        if file is None:
            from ort_lite.model.external_file import ExternalFile  # noqa: PLC0415 - lazy: rare

            try:
                path = resolve_payload(
                    self._base, location, model_path=self._model_path, colons=True
                )
                file = ExternalFile(path, self._name(location, path), mapped=self.mapped)
            except FormatError as exc:
                # ONNX Runtime's words for a path that must not be read, which people match on.
                unsafe = exc.reason == Reason.UNSAFE_PATH
                said = "External data path validation failed. " if unsafe else ""
                remedy = REMEDY if exc.reason == Reason.MISSING_PAYLOAD else ""
                raise Fail(f"{said}External data of initializer '{tensor}': {exc}{remedy}") from exc
            self._files[location] = file
        return len(file)

    def _name(self, location: str, path: str) -> str:
        """Path under which a data file is opened: in the named folder, else as resolved."""
        name = os.path.join(self._named, location.replace("\\", "/"))  # noqa: PTH118 - see safe_path
        return name if os.path.lexists(name) else path


def _place(tensor: Tensor) -> ExternalData:
    assert isinstance(tensor.data, ExternalData), "_each_external gives no others"
    return tensor.data


def _each_external(graph: GraphDef, change: Callable[[Tensor], Tensor]) -> GraphDef:
    """`graph` with every tensor that has external data as `change` returns it."""

    def change_tensor(tensor: Tensor) -> Tensor:
        return change(tensor) if isinstance(tensor.data, ExternalData) else tensor

    def in_node(node: Node) -> Node:
        tensors = {
            name: replace(attribute, value=change(value))
            for name, attribute in node.attributes.items()
            if isinstance(value := attribute.value, Tensor) and isinstance(value.data, ExternalData)
        }
        if tensors:
            node = replace(node, attributes={**node.attributes, **tensors})
        return map_bodies(node, lambda body: _each_external(body, change))

    return replace(
        graph,
        initializers={n: change_tensor(t) for n, t in graph.initializers.items()},
        nodes=tuple(map(in_node, graph.nodes)),
    )
