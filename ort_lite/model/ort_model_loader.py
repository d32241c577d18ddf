"""Models in the ORT format on their way into a session: detected, read or mapped, decoded.

docs/formats/ort.md and docs/adr/0040-ort-format.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.copied_file import open_file
from ctx_formats.errors import FormatError
from ctx_formats.ort_model_error import OrtModelError
from ctx_formats.ort_model_reader import is_ort_model, read_ort_model
from ort_lite.session_log import get_logger
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.copied_file import CopiedFile
    from ctx_formats.mapped_file import MappedFile
    from ctx_formats.model_file import ModelBytes
    from ctx_formats.onnx_model import Model
    from ort_lite.options import SessionOptions

log = get_logger(__name__)

FORMAT_KEY = "session.load_model_format"
MAP_KEY = "session.use_memory_mapped_ort_model"
BYTES_KEY = "session.use_ort_model_bytes_directly"
INITIALIZERS_KEY = "session.use_ort_model_bytes_for_initializers"
STRICT_WORKSPACE_KEY = "session.strict_workspace_verification"
EXTENSION = ".ort"


def is_ort_path(path: str, config: Mapping[str, str]) -> bool:
    """Whether a session reads `path` in the ORT format: by the option, else by the name.

    As onnxruntime: the content is not looked at, and a name is longer than the extension.
    """
    chosen = config.get(FORMAT_KEY, "")
    if chosen:
        return chosen == "ORT"
    return len(path) > len(EXTENSION) and path.lower().endswith(EXTENSION)


def is_ort_bytes(data: memoryview, config: Mapping[str, str]) -> bool:
    """Whether a session reads bytes in the ORT format: by the option, else by the identifier."""
    chosen = config.get(FORMAT_KEY, "")
    return chosen == "ORT" if chosen else is_ort_model(data)


def uses_bytes_in_place(options: SessionOptions) -> bool:
    """Whether weights stay in the memory of a bytearray or memoryview, which nobody writes to."""
    return options.flag(BYTES_KEY) and options.flag(INITIALIZERS_KEY)


def map_ort_file(path: str) -> MappedFile | CopiedFile:
    """A map of a file, which is copied as soon as somebody is about to write to the file.

    A file that is open for writing is copied at once; docs/adr/0033-copied-payloads.md.

    Raises:
        FormatError: As `MappedFile`.
        OSError: No descriptors or no memory are left.
    """
    return open_file(path, copy_limit=1)


def decode_ort(data: ModelBytes, path: str | None, options: SessionOptions) -> Model:
    """The model in the bytes of a file in the ORT format.

    Raises:
        Fail: They are damaged, or of an unknown version; with onnxruntime's words.
        InvalidArgument: A tensor has a type or a shape that the format does not have.
    """
    if options.flag(STRICT_WORKSPACE_KEY):
        raise Fail(
            f"{STRICT_WORKSPACE_KEY} is not supported when loading an ORT format model because "
            "partition-time workspace reservations are not serialized in the model. Load the "
            "ONNX model to use strict workspace verification."
        )
    try:
        read = read_ort_model(data.view)
    except OrtModelError as exc:
        kind = InvalidArgument if exc.is_argument else Fail
        raise kind(f"{_prefix(path)}{exc.message} ({exc})") from exc
    except FormatError as exc:
        raise Fail(f"{_prefix(path)}ORT model verification failed. {exc}") from exc
    if read.has_optimizations:
        log.warning(
            "The ORT format model (version %d) has saved runtime optimizations. They will be "
            "ignored.",
            read.version,
        )
    return read.model


def _prefix(path: str | None) -> str:
    return f"Load model from {path} failed:" if path else ""
