"""Commands that show a model without running it: `ort-lite inspect`, `explain` and `check`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from ort_lite.cli.device_choice import device_option, parse_device
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import (
    json_option,
    print_json,
    print_line,
    print_note,
    progress,
    size_text,
    wrapped_lines,
)
from ort_lite.cli.path_type import PATH
from ort_lite.cli.session_choice import open_session, session_choice
from ort_lite.context.quote_argument import quote_argument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.check import NodeVerdict
    from ort_lite.cli.model_facts import ContextFacts, ModelFacts
    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.model.info import NodeArg

SHOWN_OPERATORS = 12
SHOWN_CHARACTERS = 100
"""Characters shown of one metadata value."""


@click.command(short_help="Show the contents of a model file.")
@click.argument("model", type=PATH)
@device_option("Show EPContext nodes for this kind of device only.")
@json_option
def inspect(model: Path, *, device: str, as_json: bool) -> ExitCode:
    """Show MODEL's inputs, outputs and operators, and each EPContext node with its payload.

    Needs no SDK and no device, and works without the files of weights that MODEL names: each is
    listed, with its problem if a session would refuse it. Does not verify the digests of payloads:
    use `ort-lite check`.
    """
    from ort_lite.cli.model_facts import read_facts

    kind, number = parse_device(device) if device else ("", "")
    facts = read_facts(model)
    if kind:
        name = f"{kind}.{number}" if number else kind
        contexts = tuple(c for c in facts.contexts if _is_for(c, name))
        if not contexts:
            print_note(f"note: {model} has no EPContext node for {name}")
        facts = replace(facts, contexts=contexts)
    if as_json:
        print_json(asdict(facts))
        return ExitCode.OK
    for line in _lines(facts):
        print_line(line)
    return ExitCode.OK


def _is_for(context: ContextFacts, name: str) -> bool:
    """Whether a node was compiled for a device: "NPU", or "GPU.1" for a certain one."""
    recorded = str(context.identity.get("device", "")).partition(":")[0]
    options = context.options
    selected = str(options.get("device_type") or options.get("device") or "").upper()
    return any(device == name or device.startswith(f"{name}.") for device in (recorded, selected))


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
    if facts.constants:
        yield f"  constants   {facts.constants}, {size_text(facts.constant_bytes)}"
    for file in facts.weight_files:
        size = "" if file.file_bytes is None else f", {size_text(file.file_bytes)}"
        yield f"  weight file {file.location}{size}"
        if file.problem:
            yield from wrapped_lines("  problem     ", file.problem)
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


@click.command(short_help="Show where each node runs, and why.")
@click.argument("model", type=PATH)
@session_choice
@json_option
def explain(model: Path, *, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Load MODEL and show where each node runs, and why not elsewhere."""
    with open_session(model, choice) as session:
        report = session.explain()
    if as_json:
        print_json(report.to_json())
    else:
        for line in str(report).splitlines():
            text = line.lstrip()
            label = line.removesuffix(text)
            print_line("\n".join(wrapped_lines(label, text, hanging=len(label) + 2)))
    return ExitCode.OK


@click.command(short_help="Check whether a compiled model may run here.")
@click.argument("model", type=PATH)
@session_choice
@json_option
def check(model: Path, *, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Check whether the compiled MODEL may run here; exit code 4 (INVALID_GRAPH) if not.

    Finds damaged, missing and misplaced payloads before any vendor SDK is imported. No payload is
    passed to an SDK, except in a child process if session.ep_context_probe is set: exit code 7 if
    that process crashes. Of a model package, shows the verdict on each variant, as
    `ort-lite package select` does.
    """
    from ort_lite.check import check_compatibility
    from ort_lite.model.loader import is_package

    if is_package(model):
        from ort_lite.cli.package import report_selection

        return report_selection(str(model), "", choice, as_json=as_json)

    with progress(f"checking {model.name}"):
        verdicts = check_compatibility(model, choice.session_options(), choice.providers)
    code = _exit_code(verdicts)
    if as_json:
        nodes = [verdict.to_json() for verdict in verdicts]
        print_json({"model": str(model), "nodes": nodes, "exit_code": int(code)})
        return code
    if not verdicts:
        print_line(f"{model}: no EPContext nodes; this is not a compiled model")
        print_note(f"Hint: ort-lite compile {quote_argument(str(model))} compiles it")
    for verdict in verdicts:
        _print(verdict)
    return code


def _exit_code(verdicts: Sequence[NodeVerdict]) -> ExitCode:
    from ctx_formats.errors import Reason

    reasons = [v.reason for v in verdicts if v.reason is not None]
    if not reasons:
        return ExitCode.OK
    if Reason.VENDOR_CRASHED in reasons:
        return ExitCode.VENDOR_CRASHED
    absent = all(reason is Reason.DEVICE_MISSING for reason in reasons)
    return ExitCode.NO_HARDWARE if absent else ExitCode.INVALID_GRAPH


def _print(verdict: NodeVerdict) -> None:
    label = f" ({verdict.reason})" if verdict.reason else ""
    print_line(f"{verdict.node or 'EPContext node'}: {verdict.verdict.name}{label}")
    rows = [
        ("for", verdict.source),
        ("built with", identity_text(verdict.recorded)),
        ("needs", verdict.needs),
        ("here", identity_text(verdict.present)),
        ("integrity", verdict.integrity),
        ("signed by", verdict.signed_by),
        ("why", verdict.message),
        ("remedy", "" if verdict.hint in verdict.message else verdict.hint),
    ]
    for name, text in rows:
        if text:
            for line in wrapped_lines(f"  {name:<11} ", text):
                print_line(line)


def identity_text(identity: HardwareIdentity | None) -> str:
    """An identity on one line."""
    if identity is None:
        return ""
    sdk = identity.sdk_build or identity.sdk_version
    parts = (identity.device, identity.architecture, identity.driver_version, sdk)
    return ", ".join(part for part in parts if part)
