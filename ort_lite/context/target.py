"""The destination of a context model, checked before anything is compiled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.destinations import Callback, Embedded, PayloadFiles, StagesModels
from ort_lite.context.keys import EMBED_KEY, PATH_KEY, PREFIX_KEY
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from ort_lite.context.destinations import Destination
    from ort_lite.context.external_initializers import ExternalInitializers, LocationFunc
    from ort_lite.options import SessionOptions
    from ort_lite.trust.private_keys import Signer

INITIALIZERS_KEY = "ep.context_model_external_initializers_file_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTarget:
    """Where and how a context model is written.

    Attributes:
        model_path: Of the context model; None if it goes to memory or a stream.
        folder: Of the model, which names its files relative to it; None if not known.
        payloads: Where payloads are stored.
        prefix: Put before node and partition names.
        overwrite: Whether an existing context model is replaced.
        initializers: Which initializers go to a file of their own; None for none.
        locate: The user's choice for each initializer; instead of `initializers`.
        signer: Signs the model; None for a model that is not signed.
    """

    model_path: Path | None
    folder: Path | None
    payloads: Destination
    prefix: str = ""
    overwrite: bool = False
    initializers: ExternalInitializers | None = None
    locate: LocationFunc | None = None
    signer: Signer | None = None

    @property
    def group(self) -> StagesModels | None:
        """The session group that publishes the model later; None if it is published at once."""
        return self.payloads if isinstance(self.payloads, StagesModels) else None

    @property
    def description(self) -> str:
        """The model in a message."""
        return str(self.model_path) if self.model_path is not None else "the EP context model"


def file_payloads(base: Path | None, *, embed: bool) -> Embedded | PayloadFiles:
    """The destination of payloads, embedded or in files named after `base`."""
    files = PayloadFiles(base)
    if not embed:
        return files
    return Embedded(overflow=files if base is not None else None)


def session_target(path: str | None, options: SessionOptions) -> ContextTarget:
    """The target that the `ep.context_*` entries of a session name.

    Args:
        path: Of the plain model; None for one from memory.
        options: With the entries.

    Raises:
        Fail: The model came from memory and no path is given, or the output exists.
        InvalidArgument: The path is a folder, or its folder is missing or not writable.
    """
    from ort_lite.context.external_initializers import (  # noqa: PLC0415 - lazy: rare
        ExternalInitializers,
    )
    from ort_lite.context.signing import signer_of  # noqa: PLC0415 - lazy: rare

    output = options.config.get(PATH_KEY, "")
    source = Path(path) if path is not None else None
    if not output and source is None:
        raise Fail(
            "Inference session with a model loaded from bytes was configured with EPContext "
            "model generation enabled but without a valid location (e.g., file or buffer) for "
            "the output model. Please specify a valid ep.context_file_path via SessionOption "
            "configs or use the OrtCompileApi to compile a model to a file or buffer."
        )
    file_name = options.config.get(INITIALIZERS_KEY, "")
    model_path = output_path(output, source)
    group = options.shared_contexts
    target = ContextTarget(
        model_path=model_path,
        folder=model_path.parent,
        payloads=file_payloads(Path(output) if output else source, embed=_is_embedded(options)),
        prefix=options.config.get(PREFIX_KEY, ""),
        overwrite=group is not None and group.replaces_models,
        initializers=ExternalInitializers(file_name, threshold=0) if file_name else None,
        signer=signer_of(options),
    )
    check_target(target)
    return target


def _is_embedded(options: SessionOptions) -> bool:
    value = options.config.get(EMBED_KEY, "0")
    if value not in ("0", "1"):
        raise InvalidArgument(f"{EMBED_KEY} is '{value}', expected 0 (external) or 1 (embedded)")
    return value == "1"


def output_path(output: str, source: Path | None) -> Path:
    """Path of the context model: `output`, or `<source>_ctx.onnx` where that is "".

    Raises:
        InvalidArgument: `output` is a folder or has no extension, or both are missing.
    """
    if output:
        path = Path(output)
        if not path.suffix or path.is_dir() or output.endswith(("/", os.sep)):
            raise InvalidArgument(f"context_file_path should not point to a folder. Got: {output}")
        return path
    if source is None:
        raise InvalidArgument("Both ep_context_path and model_path are empty.")
    return source.with_name(f"{source.stem}_ctx.onnx")


def check_target(target: ContextTarget) -> None:
    """Refuse, before anything is compiled, a target that cannot be written.

    Raises:
        Fail: The context model exists and is not to be overwritten.
        InvalidArgument: Its folder is missing or cannot be written to, or its name is that of a
            file in the ORT format.
    """
    path = target.model_path
    if isinstance(target.payloads, PayloadFiles | Callback):
        _require_unicode(target.payloads.base)
    if path is None:
        return
    if not target.overwrite and (path.exists() or path.is_symlink()):
        raise exists_already(path)
    if path.name.lower().endswith(".ort"):
        raise InvalidArgument(
            f"{path}: context models are written in ONNX, and a session reads this name in the ORT "
            "format. Give a name that ends in .onnx; `ort-lite convert` makes an .ort file of it."
        )
    folder = path.parent
    if not folder.is_dir():
        from ctx_formats import long_path  # noqa: PLC0415 - lazy: rare

        sentence = long_path.explain_length(folder, long_path.LONGEST_FOLDER)
        raise InvalidArgument(
            f"the folder of the EP context model does not exist: {folder}. "
            + (sentence or "Make it first, or give another path.")
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidArgument(f"no permission to write the EP context model into {folder}")


def _require_unicode(base: Path | None) -> None:
    """Refuse payload files whose names an EPContext node cannot hold.

    Raises:
        InvalidArgument: The name is not UTF-8.
    """
    if base is None:
        return
    try:
        base.stem.encode()
    except UnicodeEncodeError as exc:
        raise InvalidArgument(
            f"the compiled data of {str(base)!a} would get a name that is not UTF-8, which an "
            f"EPContext node cannot hold: set {PATH_KEY} to another name, or embed the compiled "
            "data into the model"
        ) from exc


def exists_already(path: Path) -> Fail:
    """ONNX Runtime's error for an output that exists."""
    return Fail(
        f"Failed to generate EP context model since the file '{path}' exists already. "
        "Please remove the EP context model if you want to re-generate it."
    )
