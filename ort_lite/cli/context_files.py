"""Context models as files: their default names, and the payload files that belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ort_lite.cli.output import print_line, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def default_context_path(model: Path) -> Path:
    """The context model of `model` where no other name is given: next to it."""
    return model.with_name(f"{model.stem}_ctx.onnx")


def list_files(contexts: Sequence[Path]) -> list[Path]:
    """The context models, and the payload files that they name, each once.

    Raises:
        OrtLiteError: A context model cannot be read.
    """
    from ort_lite.cli.model_facts import read_facts

    payloads = {
        context.parent / node.payload: None
        for context in contexts
        for node in read_facts(context).contexts
        if node.payload
    }
    return [*contexts, *payloads]


def files_json(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Path and size in bytes of each file."""
    return [{"path": str(path), "bytes": path.stat().st_size} for path in files]


def print_files(files: Sequence[Path]) -> None:
    """Print a line for each file."""
    for path in files:
        print_line(f"{path}  {size_text(path.stat().st_size)}")
