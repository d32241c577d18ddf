"""Explains an error about a file in the words of a new user, with the next command."""

from __future__ import annotations

import mmap
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.file_kind import kind_of
from ctx_formats.long_path import explain_length
from ort_lite.context.hints import quote_argument
from ort_lite.status import Fail, InvalidProtobuf, NoSuchFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ort_lite.status import OrtLiteError

MODEL_FIELD = "model.graph"
"""Field of the error on a file that is protobuf and has no graph, such as an empty one."""
CUT_SHORT = "bytes announced"
"""Words of the error on a length that exceeds the rest of the file."""
_INPUTS = ("image", ".npy", ".npz", "JSON")
_OTHER_MODELS = {
    "PyTorch": "export the model with torch.onnx.export",
    "pickle": "export the model with torch.onnx.export",
    "TensorFlow Lite": "convert it with tf2onnx",
    "Keras": "convert the model with tf2onnx",
    "OpenVINO": "use the .onnx file from which it was converted",
    "safetensors": "export the model with its weights to ONNX, for example with optimum-cli",
    "GGUF": "use an ONNX export of the model",
    "ORT format": "use the .onnx file from which it was converted",
    "empty": "download or export the model again",
    "zeros": "download or export the model again",
}
"""Word in a kind of file to the way to an ONNX model."""
MAX_NAMED = 3
"""Most models of a folder that a hint lists."""


def explain_error(exc: OrtLiteError) -> tuple[str, str]:
    """Sentence and hint for an error about a model file; ("", "") for other errors."""
    cause = exc.__cause__
    if isinstance(exc, Fail) and isinstance(cause, FormatError):
        return _explain_weights(cause)
    if not isinstance(cause, FormatError) or not cause.file:
        return "", ""
    path = _as_typed(Path(cause.file))
    if isinstance(exc, NoSuchFile):
        return f"{path} does not exist", explain_length(path) or _similar_model(path)
    if isinstance(exc, InvalidProtobuf) or cause.field == MODEL_FIELD:
        return _explain_content(path, cause)
    return "", ""


def look_at(path: Path) -> str:
    """Kind of a file that is not an ONNX model: "a PNG image"; "" if nothing is known."""
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return kind_of(memoryview(b""))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                view = memoryview(data)
                try:
                    return kind_of(view)
                finally:
                    view.release()
    except (OSError, ValueError):  # it went away, or cannot be mapped
        return ""


def _as_typed(path: Path) -> Path:
    """`path` relative to the working folder, if it is inside."""
    try:
        return path.relative_to(Path.cwd())
    except (ValueError, OSError):  # elsewhere, or the working folder is gone
        return path


def _explain_weights(cause: FormatError) -> tuple[str, str]:
    """Sentence and hint for a file of weights that the model names and that is absent."""
    if cause.reason is not Reason.MISSING_PAYLOAD:
        return "", ""
    return (
        f"the model keeps weights in a file of its own: {cause.found}",
        "copy or download that file, too, next to the model",
    )


def _explain_content(path: Path, cause: FormatError) -> tuple[str, str]:
    kind, _, remedy = look_at(path).partition("; ")
    if kind:
        return f"{path} is {kind}, not an ONNX model", remedy or _hint_for(kind, path)
    if CUT_SHORT in cause.found:
        return (
            f"{path} is cut short or damaged: {cause.field}: {cause.found}",
            "copy or download the whole file again",
        )
    return "", ""


def _hint_for(kind: str, path: Path) -> str:
    if any(word in kind for word in _INPUTS):
        return f"ort-lite run MODEL {quote_argument(str(path))} runs a model on it"
    hints = (hint for word, hint in _OTHER_MODELS.items() if word in kind)
    return next(hints, "give the path of an ONNX model (.onnx)")


def _similar_model(path: Path) -> str:
    """Hint at the model that was meant, or at what its folder has."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    except OSError:
        return f"the folder {path.parent} does not exist"
    close = get_close_matches(path.name, names, n=1, cutoff=0.75)
    if close:
        return f"did you mean {path.with_name(close[0])}?"
    models = [name for name in names if name.endswith((".onnx", ".ort"))]
    where = "this folder" if path.parent == Path() else str(path.parent)
    if not models:
        return f"{where} has no model; give the path of an ONNX model (.onnx)"
    return f"{where} has {_join_names(models)}"


def _join_names(names: Iterable[str]) -> str:
    shown = list(names)
    more = len(shown) - MAX_NAMED
    return ", ".join(shown[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
