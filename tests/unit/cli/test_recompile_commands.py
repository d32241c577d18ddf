"""Commands that compile a context model again repeat what it records, and run as pasted."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest
from unit.cli.conftest import write_dense
from unit.cli.test_documented_commands import split_like_cmd

import ort_lite as ort
from ctx_formats.ep_context import EpContextNode
from ctx_formats.lean_dataclass import replace
from ctx_formats.model_reader import read_model
from ctx_formats.notes import ContextNotes, read_notes
from ort_lite.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.cli.conftest import Invoke

OLD = {"sdk_version": "2024.1.0"}
NPU = {"device": "NPU: Intel(R) AI Boost", "architecture": "NPU4000"}
SOURCE = "OpenVINOExecutionProvider"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_dense(tmp_path / "dense.onnx")


def contexts(path: Path) -> dict[str, EpContextNode]:
    nodes = read_model(memoryview(path.read_bytes())).graph.nodes
    return {n.name: EpContextNode.from_node(n) for n in nodes if n.op_type == "EPContext"}


def notes_of(node: EpContextNode) -> ContextNotes:
    notes = read_notes(node)
    assert notes is not None
    return notes


def recorded(path: Path) -> list[tuple[str, bool, dict[str, str]]]:
    nodes = contexts(path).values()
    return [(node.source, node.embed_mode, dict(notes_of(node).options)) for node in nodes]


def rewrite(path: Path, change: Callable[[ContextNotes], ContextNotes]) -> None:
    """Change the notes of a context model as if its maker had written them so."""
    nodes = contexts(path)
    proto = onnx.load(path)
    for node in proto.graph.node:
        if node.name not in nodes:
            continue
        notes = change(notes_of(nodes[node.name]))
        identity = notes.identity
        said = replace(
            nodes[node.name],
            ep_sdk_version=identity.sdk_version,
            hardware_architecture=identity.architecture,
        )
        sealed = notes.seal_into(said)
        for attribute in node.attribute:
            if attribute.name in ("notes", "ep_sdk_version", "hardware_architecture"):
                attribute.s = getattr(sealed, attribute.name).encode()
    path.write_bytes(proto.SerializeToString())


def pretend(path: Path, fields: dict[str, str]) -> None:
    """Let a context model say that it was compiled for something else."""
    rewrite(path, lambda notes: replace(notes, identity=replace(notes.identity, **fields)))


def command_of(invoke: Invoke, path: Path) -> list[str]:
    """Arguments of the command in the error of a run."""
    refused = invoke("run", path, "--shape", "x=1x3")
    assert refused.code == ExitCode.INVALID_GRAPH, refused
    (line,) = re.findall(r"ort-lite ((?:compile|package build) .+)", refused.err)
    split = split_like_cmd if sys.platform == "win32" else shlex.split
    return split(line.strip())


@pytest.mark.parametrize(
    "options",
    [
        ["-e", "openvino"],
        ["-e", "openvino", "--embed"],
        ["-e", "openvino", "-O", "precision=FP32", "--embed"],
        ["--device", "cpu", "-O", "openvino.num_of_threads=1"],
        pytest.param(
            ["-e", "openvino", "-O", 'load_config={"CPU": {"NUM_STREAMS": "1"}}'],
            marks=pytest.mark.skipif(sys.platform == "win32", reason="cmd and PowerShell differ"),
        ),
        ["-e", "openvino", "-O", "reshape_input=x[1..4,3]"],
        ["-e", "openvino", "--dim", "batch=1"],
        ["-e", "openvino", "-O", "reshape_input=x[1,3]", "--dim", "batch=1"],
    ],
    ids=["plain", "embed", "precision", "device", "json", "shapes", "size", "size and shape"],
)
def test_the_command_repeats_what_the_context_records(invoke: Invoke, options: list[str]) -> None:
    context = Path("dense_ctx.onnx")
    if options[0] == "--device":
        options = ["-e", "openvino", *options]
    assert invoke("compile", "dense.onnx", *options).code == ExitCode.OK
    before, inputs = recorded(context), onnx.load(context).graph.input
    pretend(context, OLD)
    again = invoke(*command_of(invoke, context))
    assert again.code == ExitCode.OK, again
    assert recorded(context) == before
    assert onnx.load(context).graph.input == inputs
    assert invoke("run", context, "--shape", "x=1x3").code == ExitCode.OK


def test_options_belong_to_their_execution_provider(invoke: Invoke) -> None:
    """The context has nodes of two providers; an option of one is none of the other."""
    context = Path("dense_ctx.onnx")
    options = ["-e", "openvino", "-O", "precision=FP32"]
    assert invoke("compile", "dense.onnx", *options).code == ExitCode.OK
    pretend(context, OLD)
    proto = onnx.load(context)
    (node,) = proto.graph.node
    proto.graph.node.append(node)
    other = proto.graph.node[1]
    other.name, other.output[0] = "other", "z"
    (source,) = [a for a in other.attribute if a.name == "source"]
    source.s = b"CPUExecutionProvider"
    context.write_bytes(proto.SerializeToString())
    words = command_of(invoke, context)
    assert words == [
        *("compile", "dense.onnx", "--force"),
        *("-e", "openvino", "-e", "cpu", "-O", "openvino.precision=FP32"),
    ]


def test_a_context_for_another_kind_of_device_is_compiled_for_the_one_that_is_here(
    invoke: Invoke,
) -> None:
    context = Path("dense_ctx.onnx")
    options = ["-e", "openvino", "-O", "precision=ACCURACY", "-O", "reshape_input=x[1,3]"]
    assert invoke("compile", "dense.onnx", *options).code == ExitCode.OK
    npu = {"device_type": "NPU", "npu_platform": "4000", "precision": "FP16"}
    rewrite(context, lambda notes: replace(notes, options={**notes.options, **npu}))
    pretend(context, NPU)
    words = command_of(invoke, context)
    assert not {"precision=FP16", "npu_platform=4000", "device_type=NPU"} & set(words)
    assert words[-2:] == ["--device", "cpu"]
    assert invoke(*words).code == ExitCode.OK
    ((_, _, made_with),) = recorded(context)
    assert made_with == {"device_type": "CPU", "reshape_input": "x[1,3]"}


def test_damage_to_an_npu_context_leaves_its_platform_in_the_command(invoke: Invoke) -> None:
    context = Path("dense_ctx.onnx")
    assert invoke("compile", "dense.onnx", "-e", "openvino").code == ExitCode.OK
    npu = {"device_type": "NPU", "npu_platform": "4000"}
    rewrite(context, lambda notes: replace(notes, options=npu, payload_blake3="0" * 64))
    words = command_of(invoke, context)
    assert words[3:] == [
        *("-e", "openvino", "-O", "device_type=NPU", "-O", "npu_platform=4000"),
    ]


def test_options_that_cannot_be_read_in_a_command_are_named(invoke: Invoke) -> None:
    context = Path("dense_ctx.onnx")
    assert invoke("compile", "dense.onnx", "-e", "openvino").code == ExitCode.OK
    odd = {"load_config": "{\n}", "precision": "\x1b[31m", "cache_dir": "elsewhere", "nosuch": "1"}
    rewrite(context, lambda notes: replace(notes, options=odd))
    pretend(context, OLD)
    with pytest.raises(ort.InvalidGraph) as refused:
        ort.InferenceSession(context, providers=[SOURCE])
    assert refused.value.hint == (
        "compile the model again on this machine with the recorded provider options load_config, "
        "precision, which ort-lite inspect shows: ort-lite compile dense.onnx --force -e openvino"
    )


def test_a_context_in_the_ort_format_is_converted_after_its_compile(invoke: Invoke) -> None:
    assert invoke("compile", "dense.onnx", "-e", "openvino", "--embed").code == ExitCode.OK
    context = Path("dense_ctx.onnx")
    pretend(context, OLD)
    assert invoke("convert", context).code == ExitCode.OK
    refused = invoke("run", "dense_ctx.ort", "--shape", "x=1x3")
    assert "then run ort-lite convert: ort-lite compile dense.onnx --force --embed" in refused.err


def build(invoke: Invoke, package: str) -> Path:
    """A package of three variants; the model of one, which says that it is old."""
    targets = ["-t", "one=openvino:cpu", "-t", "two=openvino,num_of_threads=1", "--dim", "batch=1"]
    built = invoke("package", "build", "dense.onnx", "-o", package, *targets)
    assert built.code == ExitCode.OK, built
    return Path(package, "two", "dense_ctx.onnx")


def test_the_command_for_a_file_of_a_package_builds_the_package(invoke: Invoke) -> None:
    context = build(invoke, "my pkg")
    before = invoke("package", "inspect", "my pkg", "--json").json
    made_with, inputs = recorded(context), onnx.load(context).graph.input
    pretend(context, OLD)
    words = command_of(invoke, context)
    assert words[:2] == ["package", "build"]
    again = invoke(*words)
    assert again.code == ExitCode.OK, again
    assert recorded(context) == made_with
    assert onnx.load(context).graph.input == inputs
    assert invoke("package", "verify", "my pkg").code == ExitCode.OK
    after = invoke("package", "inspect", "my pkg", "--json").json
    names = [[v["name"] for v in one["components"][0]["variants"]] for one in (before, after)]
    assert sorted(names[0]) == sorted(names[1]) == ["one", "source", "two"]
    assert after["name"] == before["name"]
    assert invoke("run", "my pkg", "--shape", "x=1x3").code == ExitCode.OK


def test_a_package_that_no_command_describes_is_named(invoke: Invoke) -> None:
    """The manifest has a description, for which `package build` has no option."""
    context = build(invoke, "mine")
    manifest = Path("mine", "manifest.json")
    text = manifest.read_text().replace('"layout"', '"description": "for laptops", "layout"')
    manifest.write_text(text)
    pretend(context, OLD)
    refused = invoke("run", context, "--shape", "x=1x3")
    assert refused.code == ExitCode.INVALID_GRAPH
    assert refused.err.strip().endswith(
        "build the package mine again on this machine, because its manifest has the digests of "
        "its files (see ort-lite package build --help)"
    )
    assert "--force" not in refused.err
