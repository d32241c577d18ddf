"""What a new user meets: help, devices by kind, notes on what has no effect, plain words."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest
from onnx import TensorProto, helper

import ort_lite
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.ignored_settings import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = Path(ort_lite.__file__).parents[1]


@pytest.mark.parametrize("arguments", [[], ["cache"], ["hw"]])
def test_a_bare_group_shows_its_commands(invoke, arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    assert result.err.startswith("Usage: ort-lite")
    assert "\nCommands:\n" in result.err


def test_verbose_goes_after_the_command_too_and_ends_with_it(invoke, model: Path) -> None:
    before = logging.getLogger("ort_lite").level
    for arguments in (["-v", "explain", model], ["explain", model, "-v"], ["cache", "-v", "ls"]):
        assert invoke(*arguments).code == 0
        assert logging.getLogger("ort_lite").level == before


def test_verbose_tells_of_a_cache_hit(
    invoke, model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = ["session.ep_context_cache=1", f"session.ep_context_cache_dir={tmp_path / 'cache'}"]
    arguments = ["explain", model, "-e", "openvino", "-v"]
    arguments += [part for entry in entries for part in ("-c", entry)]
    told = []
    for _ in range(2):
        caplog.clear()
        assert invoke(*arguments).code == 0
        told.append(" ".join(caplog.messages))
    assert "model cache: stored" in told[0]
    assert "model cache: hit" in told[1]


def test_a_device_is_named_by_its_kind(invoke, model: Path) -> None:
    found = invoke("explain", model, "--device", "cpu", "--json").json
    assert found["partitions"][0]["identity"]["device"].startswith("CPU: ")
    alone = invoke("explain", model, "--device", "cpu", "-e", "cpu", "--json").json
    assert alone["providers"] == ["CPUExecutionProvider"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["-e", "NPU"], ExitCode.USAGE, "use --device npu"),
        (["--device", "tpu"], ExitCode.USAGE, "expected cpu, gpu or npu"),
        (["--device", "gpu.x"], ExitCode.USAGE, "expected cpu, gpu or npu"),
        (["--device", "npu", "-e", "cpu"], ExitCode.USAGE, "not apply to CPUExecutionProvider"),
        (
            ["--device", "npu", "-e", "opencl"],
            ExitCode.USAGE,
            "not apply to OpenCLExecutionProvider",
        ),
        (["--device", "cpu", "--policy", "prefer_npu"], ExitCode.USAGE, "--policy"),
        (
            ["--device", "gpu", "-e", "openvino", "-O", "device_type=CPU"],
            ExitCode.USAGE,
            "conflicts with its options",
        ),
    ],
)
def test_a_wrong_device_is_refused(
    invoke, model: Path, arguments: list[str], code: ExitCode, text: str
) -> None:
    result = invoke("run", model, *arguments)
    assert (result.code, result.out) == (code, "")
    assert text in result.err


def test_a_kind_that_is_not_here_is_named(invoke, model: Path) -> None:
    eps = invoke("devices", "--json").json["execution_providers"]
    if any(device["kind"] == "NPU" for ep in eps for device in ep["devices"]):
        pytest.skip("this machine has an NPU")
    result = invoke("run", model, "--device", "npu")
    assert result.code == ExitCode.NO_HARDWARE
    missing = "device '{}' on this machine; found: .*CPU.* Hint: run ort-lite doctor"
    assert re.search(f"^error: OpenVINO has no {missing.format('NPU')}", result.err)
    if any(device["kind"] == "GPU" for ep in eps for device in ep["devices"]):
        pytest.skip("this machine has a GPU")
    result = invoke("run", model, "--device", "gpu")
    assert result.code == ExitCode.NO_HARDWARE
    assert re.search(f"^error: no execution provider has a {missing.format('GPU')}", result.err)
    result = invoke("run", model, "-e", "opencl", "--device", "gpu")
    assert result.code == ExitCode.NO_HARDWARE
    assert re.search(f"^error: OpenCL has no {missing.format('gpu')}", result.err)
    assert result.err.count("ort-lite doctor") == 1


def test_platforms_of_npus_are_compiled_for_where_intel_s_compiler_is(invoke, model: Path) -> None:
    """OpenVINO's package for Linux lacks it: the error says so, and nothing is left behind."""
    before = set(model.parent.iterdir())
    fixed = ("--dim", "batch=1")
    result = invoke("compile", model, "--npu-platform", "4000,5010", *fixed)
    names = {path.name for path in set(model.parent.iterdir()) - before}
    if result.code == 0:
        assert {"dense_npu4000_ctx.onnx", "dense_npu5010_ctx.onnx"} <= names
        again = invoke("compile", model, "--npu-platform", "4000,4000", *fixed, "--force")
        assert again.code == 0
        return
    assert result.code == ExitCode.NO_HARDWARE
    assert "NPU compiler library" in result.err
    assert "compile on Windows" in result.err
    assert "ort-lite devices" not in result.err
    assert names == set()
    for wrong, text in (
        (["--npu-platform", "lunar"], "expected numbers such as 4000,5010"),
        (["--npu-platform", "4000", "-e", "cpu"], "is for OpenVINOExecutionProvider"),
        (["--npu-platform", "4000", "--device", "cpu"], "for an NPU, not for CPU"),
    ):
        refused = invoke("compile", model, *wrong)
        assert refused.code == ExitCode.USAGE
        assert text in refused.err


def notes(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("note: ")]


def test_what_has_no_effect_is_told(invoke, model: Path) -> None:
    given = ("--dim", "nosuch=3", "--dim", "batch=2", "-c", "session.disable_cpu_ep_falback=1")
    result = invoke("explain", model, *given)
    assert result.code == 0
    config, dim = notes(result.err)
    assert "did you mean session.disable_cpu_ep_fallback?" in config
    assert dim == "note: --dim nosuch has no effect: the model has batch"


def test_of_many_symbols_those_of_inputs_are_listed(invoke, tmp_path: Path) -> None:
    values = [f"v{number}" for number in range(30)]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], [value]) for value in values],
        "many",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["width", "height"])],
        [helper.make_tensor_value_info(v, TensorProto.FLOAT, [f"a_{v}", "h"]) for v in values],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    result = invoke("explain", tmp_path / "m.onnx", "--dim", "nosuch=3", "-e", "cpu")
    (note,) = notes(result.err)
    assert ": the model has width, height, a_v0, h, " in note
    assert note.endswith(" and 25 more")


def test_a_preference_that_nothing_meets_is_told(invoke, model: Path) -> None:
    eps = invoke("devices", "--json").json["execution_providers"]
    if any(device["kind"] == "NPU" for ep in eps for device in ep["devices"]):
        pytest.skip("this machine has an NPU")
    (note,) = notes(invoke("explain", model, "--policy", "prefer_npu").err)
    assert "preferred NPU" in note


def keys_in_the_source() -> Iterator[str]:
    """Every literal that is a session's configuration key, as the product spells it."""
    spelled = re.compile(r'"((?:session|ep|optimization)\.[a-z_.]+)"')
    for folder in ("ort_lite", "eps"):
        for path in (PACKAGES / folder).rglob("*.py"):
            if path.name != "ignored_settings.py":
                yield from spelled.findall(path.read_text("utf-8"))


def test_the_entries_that_are_known_are_those_that_something_reads() -> None:
    assert set(keys_in_the_source()) == ENTRIES


def test_long_metadata_is_cut_in_a_listing(invoke, model: Path) -> None:
    loaded = onnx.load(model)
    onnx.helper.set_model_props(loaded, {"character": "a\n" * 5000})
    onnx.save(loaded, model)
    shown = invoke("inspect", model).out
    assert "(10,000 characters; --json shows all)" in shown
    assert "character" in shown
    assert max(map(len, shown.splitlines())) < 250
    assert len(invoke("inspect", model, "--json").json["metadata"]["character"]) == 10_000


def test_one_thing_is_not_counted_as_many(invoke, model: Path, tmp_path: Path) -> None:
    assert "; 1 partition; " in invoke("compile", model, "-e", "openvino").out
    cache = (
        "-c",
        "session.ep_context_cache=1",
        "-c",
        f"session.ep_context_cache_dir={tmp_path / 'c'}",
    )
    assert invoke("explain", model, "-e", "openvino", *cache).code == 0
    assert ": 1 entry, " in invoke("cache", "du", "--dir", tmp_path / "c").out


def test_explaining_the_cache_has_an_exit_code(invoke, model: Path, tmp_path: Path) -> None:
    folder = ("--dir", tmp_path / "cache")
    assert invoke("cache", "explain", model, *folder, "-e", "openvino").code == ExitCode.DIFFERENT
    cache = ("-c", "session.ep_context_cache=1", "-c", f"session.ep_context_cache_dir={folder[1]}")
    assert invoke("explain", model, "-e", "openvino", *cache).code == 0
    hit = invoke("cache", "explain", model, *folder, "-e", "openvino")
    assert hit.code == ExitCode.OK
    assert "\nfor: OpenVINOExecutionProvider on CPU" in hit.out
    for code in (ExitCode.OK, ExitCode.USAGE):
        exported = invoke("cache", "export", tmp_path / "out.tar", *folder)
        assert exported.code == code
    assert "out.tar exists already" in exported.err


def test_a_cache_that_is_a_file_is_named(invoke, model: Path) -> None:
    result = invoke("cache", "ls", "--dir", model)
    assert result.code == ExitCode.USAGE
    assert "dense.onnx is not a folder" in result.err


def test_force_replaces_a_context_as_a_whole(
    invoke, context: Path, payload: Path, model: Path
) -> None:
    before = context.read_bytes(), payload.read_bytes()
    arguments = ("compile", model, "-o", context, "--force")
    assert invoke(*arguments, "-e", "cpu").code == ExitCode.COMPILE_FAILED
    assert (context.read_bytes(), payload.read_bytes()) == before
    assert invoke(*arguments, "-e", "openvino", "-O", "num_of_threads=1").code == 0
    assert context.read_bytes() != before[0]
    assert invoke("check", context).code == 0
    assert not [path for path in context.parent.iterdir() if path.name.startswith(".")]
    own = invoke("compile", model, "-o", model, "--force", "-e", "openvino")
    assert own.code == ExitCode.USAGE
    assert "is the model itself" in own.err
