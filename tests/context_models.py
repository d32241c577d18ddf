"""Context models on disk, taken apart and put together again with one thing changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

import ort_lite as ort
from ort_lite.testing.context_file import remove_digests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np

OPENVINO = "OpenVINOExecutionProvider"


@dataclass(frozen=True)
class ContextModel:
    """A context model, its payload file (None when embedded), its feed and right answers."""

    path: Path
    payload: Path | None
    feed: dict[str, np.ndarray]
    expected: list[np.ndarray]

    def load(self, **entries: str) -> ort.InferenceSession:
        """A session; `entries` are configuration entries, "__" standing for "."."""
        options = ort.SessionOptions()
        for key, value in entries.items():
            options.add_session_config_entry(key.replace("__", "."), value)
        return ort.InferenceSession(self.path, options, providers=[OPENVINO])

    def edit(self, change: Callable[[onnx.NodeProto], None]) -> None:
        """Rewrite the model with every EPContext node passed through `change`."""
        proto = onnx.load(self.path)
        for node in proto.graph.node:
            if node.op_type == "EPContext":
                change(node)
        self.path.write_bytes(proto.SerializeToString())

    def damage(self, change: Callable[[bytes], bytes]) -> None:
        """Rewrite the payload, wherever it is."""
        if self.payload is not None:
            self.payload.write_bytes(change(self.payload.read_bytes()))
            return

        def inside(node: onnx.NodeProto) -> None:
            for attribute in node.attribute:
                if attribute.name == "ep_cache_context":
                    attribute.s = change(attribute.s)

        self.edit(inside)


def compile_context(
    folder: Path, proto: onnx.ModelProto, feed: dict[str, np.ndarray], *, embed: bool
) -> ContextModel:
    """Compile `proto` with OpenVINO into `folder`/m_ctx.onnx."""
    source = folder / "m.onnx"
    source.write_bytes(proto.SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", str(int(embed)))
    with ort.InferenceSession(source, options, providers=[OPENVINO]) as session:
        expected = session.run(None, feed)
    payload = folder / f"m_{OPENVINO}.bin"
    return ContextModel(folder / "m_ctx.onnx", None if embed else payload, feed, expected)


def set_attribute(name: str, value: str | int | None) -> Callable[[onnx.NodeProto], None]:
    """A change for `ContextModel.edit`: give an attribute a value, or take it away."""

    def change(node: onnx.NodeProto) -> None:
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend(kept)
        if value is not None:
            node.attribute.append(onnx.helper.make_attribute(name, value))

    return change


def foreign_container(made: ContextModel, change: Callable[[bytes], bytes]) -> None:
    """Rewrite the payload as a producer without digests would, its blob changed."""
    made.damage(lambda data: remove_digests(data, change))
    made.edit(set_attribute("notes", None))
