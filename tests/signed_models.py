"""Keys, signed models, and sessions that ask for a signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from context_models import OPENVINO
from small_models import feed, mlp

import ort_lite as ort
from ort_lite.context.signing import sign_file
from ort_lite.testing.context_file import ContextFile
from ort_lite.trust.private_keys import generate_key, read_signer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import onnx

TRUST = "session.ep_context_trust"


@dataclass(frozen=True)
class Key:
    """A pair of key files."""

    private: Path
    public: Path

    def sign(self, model: Path) -> None:
        sign_file(model, model, read_signer(self.private, None), ort.SessionOptions())


def make_key(folder: Path, name: str) -> Key:
    made = generate_key(folder / name, None, force=False)
    return Key(made.private, made.public)


def options(trust: Path | str | None = None, **entries: str) -> ort.SessionOptions:
    """`entries` are configuration entries, "__" standing for "."."""
    made = ort.SessionOptions()
    if trust is not None:
        made.add_session_config_entry(TRUST, str(trust))
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    return made


def assert_untrusted(load: Callable[[], object], match: str | None = None) -> None:
    with pytest.raises(ort.InvalidGraph, match=match) as found:
        load()
    assert found.value.reason == "untrusted"
    assert "ort-lite sign" in found.value.hint


def compiled(
    folder: Path, proto: onnx.ModelProto, key: Key, ep: str = OPENVINO, embed: str = "0"
) -> ContextFile:
    """A context model that was signed as it was written."""
    folder.mkdir(exist_ok=True)
    source = folder / "m.onnx"
    source.write_bytes(proto.SerializeToString())
    made = options(ep__context_enable="1", ep__context_embed_mode=embed)
    made.add_session_config_entry("ep.context_sign_key", str(key.private))
    ort.InferenceSession(source, made, providers=[ep]).close()
    source.unlink()
    payload = None if embed == "1" else folder / f"m_{ep}.bin"
    return ContextFile(folder / "m_ctx.onnx", payload)


def answer(path: Path, trust: Path | None, ep: str = OPENVINO, proto: Any = None) -> Any:
    with ort.InferenceSession(path, options(trust), providers=[ep]) as session:
        return session.run(None, feed(proto or mlp()))[0]
