"""Choices of execution providers, kept in the model cache: one file for each path of a model.

It also names the sets of input shapes that the cache has the model for.

A choice is found again while everything is the same that it was made of: the model's bytes, the
options, the list of execution providers, ort_lite, and of each of these what is installed for it,
told from files. A device or driver that comes, goes or changes shows there, and the next start
opens everything and decides anew.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.lean_dataclass import dataclass
from ort_lite.ep.factory import SupportsInstallationFields
from ort_lite.model_cache.choice_file import name_choice_file
from ort_lite.model_cache.entry import key_of
from ort_lite.model_cache.identity import identity_before_devices
from ort_lite.model_cache.machine_identity import machine_fields
from ort_lite.model_cache.settings import bypass_reason, session_cache
from ort_lite.model_cache.source_digest import SourceStamps
from ort_lite.model_cache.store import CacheStore
from ort_lite.providers import catalog
from ort_lite.providers.provider_choice import ProviderChoice
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ort_lite.model.fixed_inputs import FixedInputs
    from ort_lite.model_cache.secret import CacheSecret
    from ort_lite.options import SessionOptions
    from ort_lite.providers.provider_list import ProviderRequest

FORMAT = 1
KIND = "provider choice"
"""Purpose of the record in its MAC, if the cache has a key."""
MAX_BYTES = 1 << 20
MOST = 32
"""Choices kept for one path: of several lists of providers, options, versions of the model, and of
its plans."""
MOST_INPUTS = 8
"""Sets of input shapes that are kept for one request."""


def find_choice(
    source: object,
    options: SessionOptions,
    requests: Sequence[ProviderRequest],
    disabled: Iterable[str],
    inputs: FixedInputs | None = None,
) -> ProviderChoice | None:
    """The choice that a session of these arguments made last; None where it has to make one.

    Args:
        source: Path or bytes of the model.
        options: The session's.
        requests: All execution providers that it asks for.
        disabled: Names of transformations that are not to run.
        inputs: Shapes and values that the model is made ready for; None for all.

    Raises:
        InvalidArgument: An option has a value that it cannot have.
    """
    record = find_record(source, options, requests, disabled, inputs)
    return None if record is None else record.choice()


def find_record(
    source: object,
    options: SessionOptions,
    requests: Sequence[ProviderRequest],
    disabled: Iterable[str],
    inputs: FixedInputs | None = None,
) -> ChoiceRecord | None:
    """What earlier starts of a request kept; None where nothing can be. Arguments: find_choice."""
    settings = session_cache(options.config, os.environ)
    if settings is None or bypass_reason(options):
        return None
    store = CacheStore(settings.folder, settings.secret)
    if store.exposure():
        return None
    digest = _digest_of(source, store, options)
    name = name_choice_file(source)
    if not digest or not name:
        return None
    identity = choice_identity(digest, options, requests, disabled, settings.secret, inputs=inputs)
    if identity is None:
        return None
    file = ChoiceFile(store.choices / name, settings.secret)
    model = str(Path(source).absolute()) if isinstance(source, str | os.PathLike) else ""
    return ChoiceRecord(file, key_of(identity), model, learns=settings.keeps_shapes)


def _digest_of(source: object, store: CacheStore, options: SessionOptions) -> str:
    """The model's digest without reading a file of it; "" if it is not known."""
    from ort_lite.model import loader  # noqa: PLC0415 - lazy: reload

    if isinstance(source, bytes | bytearray | memoryview):
        content = blake3(source).digest()
        return blake3(json.dumps(["", len(source)]).encode() + content).hexdigest()
    if not isinstance(source, str | os.PathLike) or not isinstance(os.fspath(source), str):
        return ""
    weights = options.config.get(loader.WEIGHTS_FOLDER, "")
    digested = SourceStamps(store.sources, store.secret).find_digest(Path(source), weights)
    return digested.digest if digested is not None else ""


def choice_identity(
    digest: str,
    options: SessionOptions,
    requests: Sequence[ProviderRequest],
    disabled: Iterable[str],
    secret: CacheSecret | None,
    *,
    inputs: FixedInputs | None = None,
) -> dict[str, str] | None:
    """All that a choice depends on, as text; None where an EP cannot tell what is installed.

    And where a handle of the user's chooses the device, which the text does not have.
    """
    providers = {request.name: request.options for request in requests}
    identity = identity_before_devices(digest, options, providers, disabled, secret, inputs=inputs)
    identity |= machine_fields()
    policy = options.selection_policy
    identity["policy"] = policy.name if policy is not None else ""
    installed = catalog.entries()
    for request in requests:
        identity[f"{request.name}.explicit"] = str(request.explicit)
        if request.name == catalog.DEFAULT_PROVIDER:
            continue
        if request.name not in installed:
            return None
        try:
            factory = installed[request.name].load()
        except EPFail:
            return None
        if not isinstance(factory, SupportsInstallationFields):
            return None
        if not catalog.handle_options(request.name).keys().isdisjoint(request.options):
            return None
        fields = factory.installation_fields(request.options)
        identity |= {f"{request.name}.installed.{key}": fields[key] for key in fields}
    return identity


@dataclass(frozen=True, slots=True)
class ChoiceRecord:
    """What the file of a model has for one request.

    Attributes:
        file: Of the model.
        key: Of the request's identity.
        model: Path of the model; "" for one from memory.
        learns: Whether the cache learns from runs what shapes their inputs have.
    """

    file: ChoiceFile
    key: str
    model: str
    learns: bool

    def choice(self) -> ProviderChoice | None:
        """The execution providers to open; None where they are not known."""
        return self.file.find(self.key)

    def inputs(self) -> tuple[str, ...]:
        """The sets of input shapes that the cache has the model for, as texts of FixedInputs."""
        return self.file.find_inputs(self.key) if self.learns else ()

    def keep_inputs(self, text: str) -> None:
        """Add a set of input shapes; a cache that cannot be written to stays as it is."""
        with suppress(OSError):
            self.file.keep_inputs(self.key, text, self.model)


class ChoiceFile:
    """Choices of one path by key, the one kept last at the end."""

    def __init__(self, path: Path, secret: CacheSecret | None = None) -> None:
        """`path` need not exist; with a secret, a file written without it does not count."""
        self._path = path
        self._secret = secret

    def find(self, key: str) -> ProviderChoice | None:
        """The choice of that key; None if it is absent, or the file is damaged or forged."""
        content = self._read()
        kept = content.get("choices")
        try:
            record = kept.get(key) if isinstance(kept, dict) else None
            return None if record is None else _choice_of(record)
        except (TypeError, ValueError, KeyError, AttributeError):
            return None

    def keep(self, key: str, choice: ProviderChoice, model: str) -> None:
        """Add a choice; of many the oldest go.

        Args:
            key: Of its identity.
            choice: To be found under it.
            model: Path of the model, or "": without that file, upkeep removes this one.

        Raises:
            OSError: The folder is not there, or cannot be written to.
        """
        record = {
            "names": list(choice.names),
            "opened": [[name, dict(options)] for name, options in choice.opened.items()],
            "identity": dict(choice.identity),
            "notes": list(choice.notes),
        }
        self._write("choices", key, record, model)

    def find_inputs(self, key: str) -> tuple[str, ...]:
        """Sets of input shapes kept under that key; none if the file is damaged or forged."""
        kept = self._read().get("inputs")
        texts = kept.get(key) if isinstance(kept, dict) else None
        if not isinstance(texts, list):
            return ()
        return tuple(text for text in texts if isinstance(text, str))

    def keep_inputs(self, key: str, text: str, model: str) -> None:
        """Add a set of input shapes; of many the oldest go. Arguments and errors: keep."""
        others = [one for one in self.find_inputs(key) if one != text]
        self._write("inputs", key, [*others, text][-MOST_INPUTS:], model)

    def _write(self, kind: str, key: str, record: object, model: str) -> None:
        """Add one record of a kind, and leave those of others as they are."""
        from ort_lite.model_cache.store import write_record  # noqa: PLC0415 - lazy: rare

        before = self._read()
        content: dict[str, object] = {"format": FORMAT, "model": model}
        for name in ("choices", "inputs"):
            kept = before.get(name)
            records = dict(kept) if isinstance(kept, dict) else {}
            if name == kind:
                records.pop(key, None)
                records[key] = record
            content[name] = dict(list(records.items())[-MOST:])
        if self._secret is not None:
            content["mac"] = self._secret.mac(KIND, content)
        content["check"] = _check(content)
        data = json.dumps(content).encode()
        if len(data) <= MAX_BYTES:
            write_record(self._path, data)

    def is_outdated(self) -> bool:
        """Whether no start will use it: damaged, or of a model that is gone."""
        content = self._read(authentic=False)
        model = content.get("model")
        return not isinstance(model, str) or bool(model and not Path(model).exists())

    def _read(self, *, authentic: bool = True) -> dict[str, object]:
        """The record; empty for a file that is absent, damaged or, if asked, forged."""
        try:
            data = self._path.read_bytes() if self._path.stat().st_size <= MAX_BYTES else b""
            content = json.loads(data)
            check = content.pop("check")
            if check != _check(content) or content["format"] != FORMAT:
                return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}  # the next choice replaces it
        if authentic and self._secret is not None and not self._secret.verify_mac(KIND, content):
            return {}
        return dict(content)


def _choice_of(kept: Mapping[str, object]) -> ProviderChoice:
    names, opened = kept["names"], kept["opened"]
    identity, notes = kept["identity"], kept["notes"]
    if not (isinstance(names, list) and isinstance(opened, list) and isinstance(notes, list)):
        raise TypeError("lists expected")
    if not isinstance(identity, dict):
        raise TypeError("an object expected")
    chosen = {str(name): {str(k): str(v) for k, v in own.items()} for name, own in opened}
    if not chosen or not set(chosen) <= set(names):
        raise ValueError("an execution provider that the session does not have")
    return ProviderChoice(
        names=tuple(map(str, names)),
        opened=chosen,
        identity={str(k): str(v) for k, v in identity.items()},
        notes=tuple(map(str, notes)),
    )


def _check(content: object) -> str:
    return blake3(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
