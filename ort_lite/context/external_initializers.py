"""Initializers of a context model in a file of their own, or where the user wants them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.onnx_model import ExternalData
from ort_lite.model.bodies import map_bodies, walk
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ctx_formats.onnx_model import GraphDef, Tensor


@dataclass(frozen=True, slots=True)
class OrtExternalInitializerInfo:
    """The position of an initializer's bytes in an external file.

    Attributes:
        filepath: Relative to the model.
        file_offset: Bytes from the start of that file.
        byte_size: Bytes.
    """

    filepath: str
    file_offset: int
    byte_size: int


@dataclass(frozen=True, slots=True)
class ExternalInitializers:
    """A data file for initializers of `threshold` bytes and more; strings stay in the model."""

    file_name: str
    threshold: int = 1024

    def __post_init__(self) -> None:
        """Check that the name is relative: the model finds the file next to itself.

        Raises:
            InvalidArgument: It is absolute or leads out of the model's folder.
        """
        path = PurePosixPath(self.file_name)
        if not self.file_name or path.is_absolute() or ".." in path.parts:
            raise InvalidArgument(
                f"the external initializers file must be a path relative to the model, not "
                f"'{self.file_name}'"
            )

    def takes(self, tensor: Tensor) -> bool:
        """Whether an initializer goes to the file."""
        return isinstance(tensor.data, memoryview) and len(tensor.data) >= self.threshold


if TYPE_CHECKING:
    LocationFunc = Callable[
        [str, Any, OrtExternalInitializerInfo | None], OrtExternalInitializerInfo | None
    ]


def write_external(
    graph: GraphDef, chosen: ExternalInitializers, folder: Path, *, overwrite: bool
) -> GraphDef:
    """Move initializers, those of bodies included, into a data file, which appears whole.

    Returns:
        The graph with references; the graph itself where nothing is large enough, and then
        no file is written.

    Raises:
        Fail: The file exists and is not to be overwritten.
        OSError: It cannot be written.
    """
    if not any(chosen.takes(t) for part in walk(graph) for t in part.initializers.values()):
        return graph
    path = folder / chosen.file_name
    with create_sibling_file(path) as (file, temporary):

        def move_tensor(tensor: Tensor) -> Tensor:
            if not chosen.takes(tensor):
                return tensor
            assert isinstance(tensor.data, memoryview), "others are not taken"
            where = ExternalData(chosen.file_name, file.tell(), len(tensor.data))
            file.write(tensor.data)
            return replace(tensor, data=where)

        changed = _map_initializers(graph, move_tensor)
    try:
        publish(temporary, path, replace=overwrite)
    except FileExistsError as exc:
        raise Fail(
            f"Failed to generate EP context model since the file '{path}' exists already."
        ) from exc
    return changed


def _map_initializers(graph: GraphDef, change: Callable[[Tensor], Tensor]) -> GraphDef:
    """`graph` with every initializer, those of bodies included, passed through `change`."""
    return replace(
        graph,
        initializers={name: change(tensor) for name, tensor in graph.initializers.items()},
        nodes=tuple(
            map_bodies(node, lambda body: _map_initializers(body, change)) for node in graph.nodes
        ),
    )


def place_initializers(
    graph: GraphDef,
    locate: LocationFunc,
    origins: Mapping[str, ExternalData],
    as_value: Callable[[Any], Any],
) -> GraphDef:
    """Ask the user where each initializer goes, in the order of names.

    Args:
        graph: Initializers hold their bytes.
        locate: Gets name, value and, for data that came from a file, where; gives a place
            that it has written the bytes to, or None to keep them in the model.
        origins: External data of the source model by initializer name.
        as_value: From a Tensor to what `locate` gets.

    Raises:
        Fail: `locate` raised, or gave something else; its error is the cause.
    """
    move_tensor = {}
    for name in sorted(graph.initializers):
        tensor = graph.initializers[name]
        origin = origins.get(name)
        info = (
            OrtExternalInitializerInfo(origin.location, origin.offset, origin.length or 0)
            if origin is not None
            else None
        )
        try:
            location = locate(name, as_value(tensor), info)
        except Exception as exc:
            raise Fail(f"the initializer location function failed for '{name}': {exc}") from exc
        if location is None:
            continue
        if not isinstance(location, OrtExternalInitializerInfo):
            raise Fail(
                f"the initializer location function returned {type(location).__name__} for "
                f"'{name}', expected OrtExternalInitializerInfo or None"
            )
        where = ExternalData(location.filepath, location.file_offset, location.byte_size)
        move_tensor[name] = replace(tensor, data=where)
    return replace(graph, initializers={**graph.initializers, **move_tensor})
