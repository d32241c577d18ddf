"""`ort-lite hw compile`: which rows have a compiler without the device, and what is written."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from npu_compiler import CoreWithCompiler
from small_models import mlp
from unit.hw.small_matrix import TEXT

from eps.openvino.sdk.binding import VERSION, ov
from ort_lite.cli.app import run_command
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.hw.compile_targets import CompiledModel, CompiledRow, FleetResult, target_options
from ort_lite.hw.fleet_markdown import fleet_markdown
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.rows import expand

if TYPE_CHECKING:
    from pathlib import Path

OPENVINO = VERSION.split("-")[0]


def written(folder: Path, *, require: str = '{ architecture: "4000" }') -> Path:
    """A matrix whose NPU row requires a platform, and its model."""
    text = TEXT.replace('{ driver: ">=32.0.100" }', require)
    text = text.replace(
        "dense: { path: dense.onnx }",
        "dense: { path: dense.onnx, inputs: { x: { shape: [2, 4] } } }\n"
        "  lost: { path: lost.onnx }",
    )
    (folder / "hw_matrix.yaml").write_text(text)
    (folder / "dense.onnx").write_bytes(mlp("rows").SerializeToString())
    return folder / "hw_matrix.yaml"


def compiled(folder: Path, *arguments: str) -> tuple[int, FleetResult]:
    out = folder / "out"
    code = run_command(
        ["hw", "compile", "-f", str(folder / "hw_matrix.yaml"), "-o", str(out), *arguments]
    )
    return code, msgspec.json.decode((out / "fleet.json").read_bytes(), type=FleetResult)


@pytest.mark.parametrize(
    ("require", "openvino", "why"),
    [
        ('{ architecture: "4000" }', "2026.4.1", ""),
        ('{ architecture: "lunar" }', "2026.4.1", "requires no NPU platform"),
        ("{ vendor: Intel }", "2026.4.1", "requires no NPU platform"),
        ('{ architecture: "4000" }', "", "openvino package is not installed"),
        ('{ architecture: "4000", sdk: "==2025.4.1" }', "2026.4.1", "needs OpenVINO ==2025.4.1"),
    ],
)
def test_a_row_for_an_npu_has_a_target(
    require: str, openvino: str, why: str, tmp_path: Path
) -> None:
    row = expand(read_matrix(written(tmp_path, require=require)))["npu"]
    options, found = target_options(row, openvino)
    assert (why in found) if why else not found
    assert options == ({} if why else {"device_type": "NPU", "npu_platform": "4000"})


@pytest.mark.parametrize(
    ("ep", "device", "why"),
    [
        ("CPUExecutionProvider", "CPU", "keeps no contexts"),
        ("OpenVINOExecutionProvider", "CPU", "the CPU that it runs on alone"),
        ("OpenVINOExecutionProvider", "GPU", "a GPU at hand alone"),
        ("OpenCLExecutionProvider", "GPU", "from the driver of the device"),
    ],
)
def test_other_rows_say_why_they_have_none(ep: str, device: str, why: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(
        path.read_text().replace(
            "npu: { ep: OpenVINOExecutionProvider, device: NPU",
            f"npu: {{ ep: {ep}, device: {device}",
        )
    )
    options, found = target_options(expand(read_matrix(path))["npu"], OPENVINO)
    assert options == {}
    assert why in found


def test_contexts_are_written_with_their_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    written(tmp_path)
    code, result = compiled(tmp_path, "--model", "dense")
    assert code == ExitCode.OK
    rows = {row.row: row for row in result.rows}
    assert "keeps no contexts" in rows["plain"].why_not
    (model,) = rows["npu"].models
    assert (model.partitions, model.left) == (1, {})
    assert model.taken == {"Add": 1, "MatMul": 1, "Relu": 1}
    assert len(model.files) == 2
    for file in model.files:
        data = (tmp_path / "out" / file.path).read_bytes()
        assert (file.bytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    report = (tmp_path / "out" / "fleet.md").read_text("utf-8")
    assert "| dense | 3 of 3 in 1 |" in report
    assert "numbers stay unproven until the row runs on its hardware" in report
    names = sorted(path.name for path in (tmp_path / "out" / "npu").iterdir())
    assert compiled(tmp_path, "--model", "dense")[0] == code
    assert sorted(path.name for path in (tmp_path / "out" / "npu").iterdir()) == names


def test_rows_that_differ_in_their_machine_share_contexts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    path = written(tmp_path)
    text = path.read_text("utf-8").replace(
        "  - { id: npu, provider: npu, machine: laptop,",
        "  - { id: npu, provider: npu, machine: any,",
    )
    row = next(line for line in text.splitlines() if "id: npu," in line)
    text = text.replace(row, f"{row}\n{row.replace('npu,', 'npu-2,', 1)}")
    path.write_text(f"{text}  npu-2: {{ state: expected }}\n", "utf-8")
    code, result = compiled(tmp_path, "--model", "dense", "npu", "npu-2")
    assert code == ExitCode.OK
    first, second = result.rows
    assert first.models
    assert second.why_not == "it loads the contexts of npu, which differs only in its machine"


def test_a_model_that_is_missing_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    written(tmp_path)
    code, result = compiled(tmp_path, "npu")
    assert code == ExitCode.COMPILE_FAILED
    problems = {model.model: model.problem for model in result.rows[0].models}
    assert problems == {"dense": "", "lost": "lost.onnx does not exist"}


def test_without_the_compiler_no_row_has_a_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ov.Core().get_property("NPU", "NPU_COMPILER_VERSION")
    except RuntimeError:
        written(tmp_path)
        code, result = compiled(tmp_path, "npu", "--json")
        assert code == ExitCode.NO_HARDWARE
        assert "NPU compiler library" in result.rows[0].why_not
        assert json.loads(capsys.readouterr().out)["exit_code"] == ExitCode.NO_HARDWARE
    else:
        pytest.skip("this OpenVINO has the NPU compiler library")


def test_an_unknown_model_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert run_command(["hw", "compile", "-f", str(path), "--model", "x"]) == ExitCode.USAGE
    assert "has no model 'x'" in capsys.readouterr().err


def test_what_is_left_is_listed_once_with_its_targets() -> None:
    left = {"Det": (2, "refused | by A")}
    rows = tuple(
        CompiledRow(
            row=f"npu-{n}",
            target=f"NPU {n}",
            models=(CompiledModel(model="m", partitions=1, taken={"Add": 3}, left=left),),
        )
        for n in ("3720", "4000")
    )
    text = fleet_markdown(FleetResult(rows=rows))
    assert "| m | 3 of 5 in 1 | 3 of 5 in 1 |" in text
    assert r"| m | Det x2 | NPU 3720, NPU 4000 | refused \| by A |" in text
