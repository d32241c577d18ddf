"""Where a context model goes, decided and checked before anything is compiled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.keys import EMBED_KEY, PATH_KEY, PREFIX_KEY
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from ort_lite.context.data import WriteFunc
    from ort_lite.context.external_initializers import ExternalInitializers, LocationFunc
    from ort_lite.context.payloads import PayloadPlace
    from ort_lite.context.shared_generation import Stage
    from ort_lite.options import SessionOptions
    from ort_lite.trust.private_keys import Signer

INITIALIZERS_KEY = "ep.context_model_external_initializers_file_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTarget:
    """What to write.

    Attributes:
        model_path: Of the context model; None where it goes to memory or a stream.
        payload_base: A path whose folder and stem payload files take: `<stem>_<EP>.bin`. None
            where payloads are embedded or go to `write_data`.
        embed: Whether payloads go into the model.
        prefix: Put before node and partition names.
        overwrite: Whether an existing context model is replaced.
        initializers: Which initializers go to a file of their own; None for none.
        locate: The user's choice for each initializer; instead of `initializers`.
        write_data: The user's place for payloads, instead of files.
        place: Another place for payloads, instead of files.
        stage: Where a session group keeps everything until its end.
        whole_payloads: Whether payloads of a group hold all of their weights.
        signer: Signs the model; None for a model that is not signed.
    """

    model_path: Path | None
    payload_base: Path | None
    embed: bool
    prefix: str = ""
    overwrite: bool = False
    initializers: ExternalInitializers | None = None
    locate: LocationFunc | None = None
    write_data: WriteFunc | None = None
    place: PayloadPlace | None = None
    stage: Stage | None = None
    whole_payloads: bool = False
    signer: Signer | None = None

    @property
    def folder(self) -> Path | None:
        """The folder of the model, from which it names its files; None where none is known."""
        beside = self.model_path or self.payload_base
        return beside.parent if beside is not None else None

    @property
    def described(self) -> str:
        """The model in a message."""
        return str(self.model_path) if self.model_path is not None else "the EP context model"

    def payload_name(self, ep: str) -> str:
        """File name of the payloads of one EP, which has no colon: see ctx_formats.safe_path."""
        stem = self.payload_base.stem if self.payload_base is not None else "model"
        return f"{stem}_{ep}.bin".replace(":", "_")

    def payload_path(self, ep: str) -> Path:
        """Path of the payloads of one EP.

        Raises:
            InvalidArgument: Nobody said where payload files may go.
        """
        if self.payload_base is None:
            raise InvalidArgument(
                "the compiled data has no place: embed it into the model, or set "
                f"{PATH_KEY} to where the model will lie"
            )
        return self.payload_base.with_name(self.payload_name(ep))


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

    given = options.config.get(PATH_KEY, "")
    source = Path(path) if path is not None else None
    if not given and source is None:
        raise Fail(
            "Inference session with a model loaded from bytes was configured with EPContext "
            "model generation enabled but without a valid location (e.g., file or buffer) for "
            "the output model. Please specify a valid ep.context_file_path via SessionOption "
            "configs or use the OrtCompileApi to compile a model to a file or buffer."
        )
    file_name = options.config.get(INITIALIZERS_KEY, "")
    target = ContextTarget(
        model_path=output_path(given, source),
        payload_base=Path(given) if given else source,
        embed=_embed(options),
        prefix=options.config.get(PREFIX_KEY, ""),
        initializers=ExternalInitializers(file_name, threshold=0) if file_name else None,
        signer=signer_of(options),
    )
    check_target(target)
    return target


def _embed(options: SessionOptions) -> bool:
    value = options.config.get(EMBED_KEY, "0")
    if value not in ("0", "1"):
        raise InvalidArgument(f"{EMBED_KEY} is '{value}', expected 0 (external) or 1 (embedded)")
    return value == "1"


def output_path(given: str, source: Path | None) -> Path:
    """Path of the context model: the one given, or `<source>_ctx.onnx`.

    Raises:
        InvalidArgument: `given` is a folder or has no extension, or both are missing.
    """
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
    _require_unicode(target)
    if path is None:
        return
    if not target.overwrite and (path.exists() or path.is_symlink()):
        raise exists_already(path)
    folder = path.parent
    if not folder.is_dir():
        raise InvalidArgument(f"the folder of the EP context model is not there: {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidArgument(f"no permission to write the EP context model into {folder}")


def _require_unicode(target: ContextTarget) -> None:
    """Refuse payload files whose names an EPContext node cannot hold.

    Raises:
        InvalidArgument: The name is not UTF-8.
    """
    if target.embed or target.payload_base is None:
        return
    try:
        target.payload_base.stem.encode()
    except UnicodeEncodeError as exc:
        raise InvalidArgument(
            f"the compiled data of {str(target.payload_base)!a} would get a name that is not "
            f"UTF-8, which an EPContext node cannot hold: set {PATH_KEY} to another name, or embed "
            "the compiled data into the model"
        ) from exc


def exists_already(path: Path) -> Fail:
    """ONNX Runtime's words for an output that is there."""
    return Fail(
        f"Failed to generate EP context model since the file '{path}' exists already. "
        "Please remove the EP context model if you want to re-generate it."
    )
