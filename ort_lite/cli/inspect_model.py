"""`ort-lite inspect`: shows the contents of a model file and its compiled parts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import json_option, print_json, print_line, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ort_lite.cli.model_facts import ContextFacts, ModelFacts
    from ort_lite.model.info import NodeArg

SHOWN_OPERATORS = 12
SHOWN_CHARACTERS = 100
"""Characters shown of one metadata value."""


@click.command(short_help="Show the contents of a model file.")
@click.argument("model", type=click.Path(path_type=Path))
@json_option
def inspect(model: Path, *, as_json: bool) -> ExitCode:
    """Show MODEL's inputs, outputs and operators, and each EPContext node with its payload.

    Needs no SDK and no device. Does not verify the digests of payloads: use `ort-lite check`.
    """
    from ort_lite.cli.model_facts import read_facts

    facts = read_facts(model)
    if as_json:
        print_json(asdict(facts))
        return ExitCode.OK
    for line in _lines(facts):
        print_line(line)
    return ExitCode.OK


def _lines(facts: ModelFacts) -> Iterator[str]:
    yield f"{facts.path}: {size_text(facts.file_bytes)}, IR version {facts.ir_version}" + (
        f", by {facts.producer}" if facts.producer else ""
    )
    yield f"  opsets      {_pairs(facts.opset_imports, ' ')}"
    for label, args in (("input", facts.inputs), ("output", facts.outputs)):
        for arg in args:
            yield f"  {label:<11} {_arg_text(arg)}"
    operators = [f"{op} x{n}" for op, n in facts.nodes.items()]
    more = len(operators) - SHOWN_OPERATORS
    yield (
        f"  nodes       {sum(facts.nodes.values())}: "
        + ", ".join(operators[:SHOWN_OPERATORS])
        + (f", and {more} more operators" if more > 0 else "")
    )
    yield f"  weights     {facts.weights}, {size_text(facts.weight_bytes)}"
    for key, value in facts.metadata.items():
        yield f"  metadata    {key}: {_shorten(value)}"
    for context in facts.contexts:
        yield from _context_lines(context)


def _context_lines(context: ContextFacts) -> Iterator[str]:
    yield f"{context.node}: EPContext of {context.source or 'an unnamed provider'}"
    where = "in the model" if context.embed_mode else context.payload
    if not context.main_context:
        where = "with the main context"
    size = size_text(context.payload_bytes) if context.payload_bytes is not None else ""
    rows = {
        "partition": context.partition_name,
        "payload": ", ".join(part for part in (where, size) if part),
        "digest": context.digest and f"{context.digest[:16]}... (BLAKE3)",
        "producer": context.producer,
        "compiled from": context.onnx_model_filename,
        "options": _pairs(context.options, "="),
        **{key.replace("_", " "): value for key, value in context.identity.items()},
        "problem": context.problem,
    }
    for key, value in rows.items():
        if value:
            yield f"  {key:<14} {value}"


def _shorten(value: str) -> str:
    """A metadata value on one line; an OCR model's alphabet has thousands of characters."""
    line = value[:SHOWN_CHARACTERS].replace("\n", "\\n").replace("\t", "\\t")
    if len(value) <= SHOWN_CHARACTERS:
        return line
    return f"{line}... ({len(value):,} characters; --json shows all)"


def _pairs(mapping: Mapping[str, object], sign: str) -> str:
    return ", ".join(f"{key}{sign}{value}" for key, value in mapping.items())


def _arg_text(arg: NodeArg) -> str:
    dims = ", ".join("?" if dim is None else str(dim) for dim in arg.shape)
    return f"{arg.name}: {arg.type}[{dims}]"
