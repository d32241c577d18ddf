"""Where a context model goes, decided and checked before anything is compiled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from ort_lite.model_loader import LoadedModel
    from ort_lite.options import SessionOptions

PATH_KEY = "ep.context_file_path"
EMBED_KEY = "ep.context_embed_mode"
PREFIX_KEY = "ep.context_node_name_prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTarget:
    """What to write.

    Attributes:
        model_path: Of the context model.
        stem: What payload files are named after: `<stem>_<EP>.bin` beside the model.
        embed: Whether payloads go into the model.
        prefix: Put before node and partition names.
        overwrite: Whether an existing context model is replaced.
    """

    model_path: Path
    stem: str
    embed: bool
    prefix: str = ""
    overwrite: bool = False

    def payload_name(self, ep: str) -> str:
        """File name of the payloads of one EP."""
        return f"{self.stem}_{ep}.bin"


def session_target(loaded: LoadedModel, options: SessionOptions) -> ContextTarget:
    """The target that the `ep.context_*` entries of a session name.

    Raises:
        Fail: The model came from memory and no path is given, or the output exists.
        InvalidArgument: The path is a folder, or its folder is missing or not writable.
    """
    given = options.config.get(PATH_KEY, "")
    if not given and loaded.path is None:
        raise Fail(
            "Inference session with a model loaded from bytes was configured with EPContext "
            "model generation enabled but without a valid location (e.g., file or buffer) for "
            "the output model. Please specify a valid ep.context_file_path via SessionOption "
            "configs or use the OrtCompileApi to compile a model to a file or buffer."
        )
    target = ContextTarget(
        model_path=_model_path(given, loaded.path),
        stem=Path(given).stem if given or loaded.path is None else loaded.path.stem,
        embed=_embed(options),
        prefix=options.config.get(PREFIX_KEY, ""),
    )
    check_target(target)
    return target


def _embed(options: SessionOptions) -> bool:
    value = options.config.get(EMBED_KEY, "0")
    if value not in ("0", "1"):
        raise InvalidArgument(f"{EMBED_KEY} is '{value}', expected 0 (external) or 1 (embedded)")
    return value == "1"


def _model_path(given: str, source: Path | None) -> Path:
    if given:
        path = Path(given)
        if not path.suffix or path.is_dir() or given.endswith(("/", os.sep)):
            raise InvalidArgument(f"context_file_path should not point to a folder. Got: {given}")
        return path
    if source is None:
        raise InvalidArgument("Both ep_context_path and model_path are empty.")
    return source.with_name(f"{source.stem}_ctx.onnx")


def check_target(target: ContextTarget) -> None:
    """Fail before compiling for minutes what cannot be written.

    Raises:
        Fail: The context model exists and is not to be overwritten.
        InvalidArgument: Its folder is missing or cannot be written to.
    """
    path = target.model_path
    if not target.overwrite and (path.exists() or path.is_symlink()):
        raise Fail(
            f"Failed to generate EP context model since the file '{path}' exists already. "
            "Please remove the EP context model if you want to re-generate it."
        )
    folder = path.parent
    if not folder.is_dir():
        raise InvalidArgument(f"the folder of the EP context model is not there: {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidArgument(f"no permission to write the EP context model into {folder}")
