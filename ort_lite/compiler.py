"""ModelCompiler: onnxruntime's compile API, to a file, bytes or a stream."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum, IntFlag
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.model_writer import encode_model
from ctx_formats.signatures import without_signatures
from ort_lite.context.destinations import Callback
from ort_lite.context.external_initializers import ExternalInitializers
from ort_lite.context.keys import PATH_KEY, PREFIX_KEY
from ort_lite.context.nodes import has_context_nodes
from ort_lite.context.shared_contexts import group_target, membership
from ort_lite.context.signing import signer_of
from ort_lite.context.target import ContextTarget, check_target, file_payloads, output_path
from ort_lite.context.writer import (
    context_partitions,
    context_pieces,
    sign_pieces,
    source_of,
    write_pieces,
)
from ort_lite.model import loader
from ort_lite.model.info import ModelMetadata
from ort_lite.options import GraphOptimizationLevel
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.provider_list import (
    ProviderRequest,
    applied_options,
    choose_requests,
    open_all,
)
from ort_lite.shortages import shortage_as_status
from ort_lite.start.load_request import LoadClock, LoadRequest
from ort_lite.start.optimized_model import optimized_model
from ort_lite.start.prepare_model import compile_model
from ort_lite.status import Fail, InvalidArgument, InvalidGraph, OrtLiteError, load_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ort_lite.context.data import WriteFunc
    from ort_lite.context.destinations import Destination
    from ort_lite.context.external_initializers import LocationFunc
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.start.prepare_model import PreparedModel

STREAM_CHUNK = 1 << 16


def refuse_compiled(loaded: LoadedModel) -> None:
    """Refuse a model with EPContext nodes: there is nothing left in it to compile.

    Raises:
        InvalidGraph: It has one, in a body perhaps.
    """
    if has_context_nodes(loaded.model.graph):
        raise InvalidGraph(
            "Encountered an invalid node while compiling a model. Please ensure the input model "
            "is not already compiled."
        )


class OrtCompileApiFlags(IntFlag):
    """OrtCompileApiFlags of onnxruntime_c_api.h."""

    __str__ = Enum.__str__  # as the binding's, where IntEnum gives the number
    __format__ = Enum.__format__

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


@dataclass(slots=True)
class _Settings:
    """Constructor arguments that no session option holds."""

    embed: bool
    initializers: ExternalInitializers | None
    flags: int
    locate: LocationFunc | None
    write_data: WriteFunc | None = None


class ModelCompiler:
    """Compiles one model; each `compile_to_...` compiles anew."""

    def __init__(  # noqa: PLR0913 - onnxruntime's signature
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,  # noqa: FBT001, FBT002 - see above
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: LocationFunc | None = None,
    ) -> None:
        """Take the settings; nothing is read yet.

        Args:
            sess_options: Copied; its providers compile. Where it has neither providers nor a policy
                for devices, that is the CPU EP alone, which compiles nothing.
            input_model_path_or_bytes: A plain model.
            embed_compiled_data_into_model: Whether payloads go into the model.
            external_initializers_file_path: Relative to the output; initializers that stay go
                there from a size on.
            external_initializers_size_threshold: That size in bytes.
            flags: Of OrtCompileApiFlags.
            graph_optimization_level: Of the transformations before partitioning
                (docs/optimizations.md); that of `sess_options` does not count.
            get_initializer_location_func: Gets (name, OrtValue, OrtExternalInitializerInfo or
                None) and gives where it put the bytes, or None.

        Raises:
            ValueError: The model is empty, or both ways to place initializers are given.
            TypeError: The model is neither a path nor bytes.
        """
        if get_initializer_location_func is not None and external_initializers_file_path:
            raise ValueError(
                "Cannot initialize ModelCompiler with both external_initializers_file_path and "
                "get_initializer_location_func"
            )
        self._source = _check_source(input_model_path_or_bytes)
        self._options = sess_options.snapshot()
        self._options.graph_optimization_level = GraphOptimizationLevel(graph_optimization_level)
        name = external_initializers_file_path
        self._settings = _Settings(
            embed=embed_compiled_data_into_model,
            initializers=(
                ExternalInitializers(os.fspath(name), external_initializers_size_threshold)
                if name
                else None
            ),
            flags=int(flags),
            locate=get_initializer_location_func,
        )

    def set_ep_context_data_write_func(self, write_func: WriteFunc) -> None:
        """Give payloads to `write_func(name, OrtEpContextData)` instead of writing files."""
        self._settings.write_data = write_func

    def clear_ep_context_data_write_func(self) -> None:
        """Write payload files again."""
        self._settings.write_data = None

    def set_progress_func(self, func: Callable[[str, int, int], None]) -> None:
        """Call `func(partition, how many are done, how many there are)` before each partition."""
        self._options.set_progress_func(func)

    @shortage_as_status("the model cannot be compiled")
    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Write the compiled model and its payload files.

        Args:
            output_model_path: None for `<model>_ctx.onnx` next to the input.

        Raises:
            InvalidGraph: The input is compiled already, or contradicts itself.
            InvalidArgument: There is no path to write to, or it is a folder.
            Fail: A flag's condition holds, or the output cannot be written.
            ModelLoadCanceled: `SessionOptions.set_load_cancellation_flag(True)` was called.
            OrtLiteError: As a session.
        """
        path = os.fspath(output_model_path) if output_model_path is not None else ""
        with membership(self._options):
            target = self._file_target(path)
            with self._open_pieces(target) as (pieces, place):
                try:
                    write_pieces(pieces, place)
                except OSError as exc:
                    raise Fail(f"{target.description} cannot be written: {exc}") from exc

    @shortage_as_status("the model cannot be compiled")
    def compile_to_bytes(self) -> bytes:
        """The compiled model; payloads that are not embedded go next to `ep.context_file_path`.

        Raises:
            OrtLiteError: As `compile_to_file`.
        """
        with membership(self._options), self._open_pieces(self._memory_target()) as (pieces, _):
            return b"".join(pieces)

    @shortage_as_status("the model cannot be compiled")
    def compile_to_stream(self, write_function: Callable[[bytes], None]) -> None:
        """Give the compiled model to `write_function` in chunks of up to 64 KiB.

        Raises:
            Fail: `write_function` raised; its error is the cause.
            OrtLiteError: As `compile_to_file`.
        """
        with membership(self._options), self._open_pieces(self._memory_target()) as (pieces, _):
            for piece in pieces:
                for at in range(0, len(piece), STREAM_CHUNK):
                    _call(write_function, bytes(piece[at : at + STREAM_CHUNK]))

    @property
    def _path(self) -> Path | None:
        return self._source if isinstance(self._source, Path) else None

    def _file_target(self, output: str) -> ContextTarget:
        path = output_path(output, self._path)
        flag = OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
        base = path if output or self._path is None else self._path
        target = self._target(path, base, overwrite=not self._settings.flags & flag)
        check_target(target)
        return target

    def _memory_target(self) -> ContextTarget:
        path = self._options.config.get(PATH_KEY, "")
        return self._target(None, Path(path) if path else self._path, overwrite=False)

    def _target(
        self, model_path: Path | None, base: Path | None, *, overwrite: bool
    ) -> ContextTarget:
        settings = self._settings
        payloads: Destination = file_payloads(base, embed=settings.embed)
        if settings.write_data is not None and not settings.embed:
            payloads = Callback(settings.write_data, base)
        folder = model_path or base
        return ContextTarget(
            model_path=model_path,
            folder=folder.parent if folder is not None else None,
            payloads=payloads,
            prefix=self._options.config.get(PREFIX_KEY, ""),
            overwrite=overwrite,
            initializers=settings.initializers,
            signer=signer_of(self._options),
            locate=settings.locate,
        )

    @contextmanager
    def _open_pieces(
        self, target: ContextTarget
    ) -> Iterator[tuple[Sequence[bytes | memoryview], ContextTarget]]:
        """The model as bytes, and `target` with the session group as its destination, if any."""
        with ExitStack() as open_things:
            loaded = loader.load(self._source, self._options)
            open_things.callback(loaded.close)
            self._stop_if_canceled()
            refuse_compiled(loaded)
            target = open_things.enter_context(group_target(target, self._options))
            compiled, provider_options = open_things.enter_context(self._compile(loaded, target))
            if not context_partitions(compiled.prepared):
                yield self._encode_uncompiled(compiled, target), target
                return
            pieces = context_pieces(compiled.prepared, source_of(loaded), target, provider_options)
            encoded = open_things.enter_context(pieces)
            self._stop_if_canceled()
            yield encoded, target

    def _stop_if_canceled(self) -> None:
        if self._options.is_canceled():
            raise load_canceled()

    @contextmanager
    def _compile(
        self, loaded: LoadedModel, target: ContextTarget
    ) -> Iterator[tuple[PreparedModel, Mapping[str, Mapping[str, str]]]]:
        """The compiled model, and the provider options that its EPs were opened with."""
        if self._options.selects_by_runs and not self._options.has_providers():
            raise InvalidArgument(
                "the policy FASTEST measures runs of a session, and ModelCompiler runs nothing: "
                "name an execution provider, or set another policy"
            )
        free = not self._options.has_providers() and not self._options.selects_devices
        named = [ProviderRequest(DEFAULT_PROVIDER, {}, explicit=False)] if free else []
        requests = choose_requests(self._options, named, lambda: ModelMetadata.of(loaded.model))
        eps = open_all(requests, kernels=self._options.custom_kernels)
        with ExitStack() as undo:
            for ep in eps:
                undo.callback(ep.release)
            request = LoadRequest(
                options=self._options,
                eps=eps,
                provider_options=applied_options(requests, [ep.name for ep in eps]),
                clock=LoadClock(),
                context=True,
            )
            compiled = compile_model(loaded, request, target.group)
            undo.callback(compiled.prepared.release)
            yield compiled, request.provider_options

    def _encode_uncompiled(
        self, compiled: PreparedModel, target: ContextTarget
    ) -> Sequence[bytes | memoryview]:
        """The model where no EP compiled anything: transformed, if something was, or as it is."""
        if self._settings.flags & OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED:
            raise Fail(
                "Unable to compile any nodes. Check that the session EPs support compilation and "
                "can execute at least one subgraph in the model."
            )
        try:
            model = compiled.loaded.model
            if any(compiled.transforms.values()):
                model = optimized_model(compiled.prepared, model)
            metadata = without_signatures(model.metadata_props)
            pieces = encode_model(replace(model, metadata_props=metadata))
            return sign_pieces(pieces, model, target)
        except FormatError as exc:
            raise Fail(f"the model cannot be written: {exc}") from exc


def _check_source(source: object) -> Path | bytes:
    if isinstance(source, bytes):
        if not source:
            raise ValueError("Input model bytes array is empty")
        return source
    if isinstance(source, str | os.PathLike):
        text = os.fspath(source)
        if not text:
            raise ValueError("Input model path is empty")
        if isinstance(text, str):
            return Path(text)
    raise TypeError(f"Unable to load from type '{type(source)}'")


def _call(write_function: Callable[[bytes], None], data: bytes) -> None:
    try:
        write_function(data)
    except OrtLiteError:
        raise
    except Exception as exc:
        raise Fail(
            f"Caught exception while calling user's OrtOutStreamWriteFunc callback: {exc}"
        ) from exc
