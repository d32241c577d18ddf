"""`ort-lite package`: results, JSON, exit codes and next steps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from built_packages import NPUS, OPENVINO, npu_contexts, tree
from signed_models import make_key
from small_models import mlp

from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.package_targets import parse_target

if TYPE_CHECKING:
    from collections.abc import Callable

    Invoke = Callable[..., Any]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    return tmp_path / "m.onnx"


@pytest.fixture
def package(model: Path, invoke: Invoke) -> str:
    """Two NPUs that are absent, OpenVINO on this CPU, and the source."""
    contexts = [f"--context={path}" for _, path in npu_contexts(model.parent)]
    result = invoke("package", "build", model, "-o", "p", "-t", "openvino:cpu", *contexts)
    assert result.code == ExitCode.OK, result.err
    assert result.out.startswith("p: openvino-npu-4000, openvino-npu-5010, openvino-cpu, source;")
    return "p"


def test_inspect_lists_variants(package: str, invoke: Invoke) -> None:
    result = invoke("package", "inspect", package)
    assert result.code == ExitCode.OK
    assert "openvino-npu-4000  OpenVINOExecutionProvider  npu     compiled" in result.out
    assert "openvino-cpu       OpenVINOExecutionProvider  cpu     compiled" in result.out
    assert "source             CPUExecutionProvider       cpu     source" in result.out
    (component,) = invoke("package", "inspect", package, "--json").json["components"]
    assert [v["name"] for v in component["variants"]] == [*NPUS, "openvino-cpu", "source"]


def test_select_explains_each_variant(package: str, invoke: Invoke) -> None:
    result = invoke("package", "select", package)
    assert result.code == ExitCode.OK
    assert "* openvino-cpu: fits" in result.out
    assert "openvino-npu-4000: refused (device_missing)" in result.out
    content = invoke("package", "select", package, "--json").json
    assert content["chosen"] == "openvino-cpu"
    assert content["variants"][0]["reason"] == "device_missing"


def test_select_fails_where_nothing_fits(package: str, invoke: Invoke) -> None:
    result = invoke("package", "select", package, "-e", "opencl")
    assert result.code == ExitCode.INVALID_GRAPH
    assert "no variant fits this machine" in result.out


def test_other_commands_take_a_package(package: str, invoke: Invoke) -> None:
    result = invoke("run", package, "-e", "openvino")
    assert result.code == ExitCode.OK, result.err
    refused = invoke("run", package, "-e", "opencl")
    assert refused.code != ExitCode.OK
    assert "No suitable model variant" in refused.err
    assert "session.package_fallback" in refused.err
    cpu = invoke("run", package, "-e", "opencl", "-c", "session.package_fallback=cpu")
    assert cpu.code == ExitCode.OK, cpu.err
    assert "no effect" not in cpu.err


def test_verify_finds_damage(package: str, model: Path, invoke: Invoke) -> None:
    assert invoke("package", "verify", package).code == ExitCode.OK
    (model.parent / package / "source" / "m.onnx").write_bytes(b"x")
    result = invoke("package", "verify", package, "--json")
    assert result.code == ExitCode.INVALID_GRAPH
    assert result.json["problems"][0]["path"] == "source/m.onnx"


def test_prune_keeps_what_is_named(package: str, model: Path, invoke: Invoke) -> None:
    result = invoke("package", "prune", package, "--keep", "openvino-cpu", "-o", "small")
    assert result.code == ExitCode.OK
    assert set(tree(model.parent / "small")) == {
        "manifest.json",
        "openvino-cpu/m_ctx.onnx",
        f"openvino-cpu/m_ctx_{OPENVINO}.bin",
    }
    assert invoke("package", "prune", package).code == ExitCode.USAGE
    assert invoke("package", "prune", package, "--keep", "x").code == ExitCode.USAGE
    again = invoke("package", "prune", package, "--drop", "source", "-o", "small")
    assert again.code == ExitCode.USAGE


def test_sign_and_verify(package: str, invoke: Invoke) -> None:
    pytest.importorskip("cryptography", reason="needs the package cryptography")
    invoke("keygen", "release")
    unsigned = invoke("package", "verify", package, "--trust", "release.pub")
    assert unsigned.code == ExitCode.INVALID_GRAPH
    assert "not signed" in unsigned.err
    signed = invoke("package", "sign", package, "--key", "release.key", "--json")
    assert signed.code == ExitCode.OK
    assert "source/m.onnx" in signed.json["files"]
    verified = invoke("package", "verify", package, "--trust", "release.pub", "--json")
    assert verified.code == ExitCode.OK
    assert verified.json["signed_by"] == signed.json["key"]
    entry = f"session.ep_context_trust=release.pub{os.linesep}"
    run = invoke("run", package, "-e", "openvino", "-c", entry.strip())
    assert run.code == ExitCode.OK, run.err


def test_a_package_is_not_replaced_by_accident(package: str, model: Path, invoke: Invoke) -> None:
    result = invoke("package", "build", model, "-o", package, "--json")
    assert result.code == ExitCode.USAGE
    assert "--force replaces it" in result.json["error"]["message"]
    assert invoke("package", "build", model, "-o", package, "--force").code == ExitCode.OK


def test_no_package_is_a_clear_error(model: Path, invoke: Invoke) -> None:
    result = invoke("package", "inspect", "absent")
    assert result.code == ExitCode.USAGE
    assert "absent" in result.err
    empty = invoke("package", "build", model, "-o", "p", "--no-source")
    assert empty.code == ExitCode.USAGE
    assert "name a --target or a --context" in empty.err


@pytest.mark.parametrize(
    ("text", "options", "name"),
    [
        ("openvino", {}, ""),
        ("openvino:cpu", {"device_type": "CPU"}, ""),
        ("mine=openvino:gpu.1", {"device_type": "GPU.1"}, "mine"),
        ("openvino:npu.4000", {"device_type": "NPU", "npu_platform": "4000"}, ""),
        ("openvino,reshape_input=x[1,3],a=b", {"reshape_input": "x[1,3]", "a": "b"}, ""),
        ("a=openvino,device_type=CPU", {"device_type": "CPU"}, "a"),
    ],
)  # fmt: skip
def test_targets(text: str, options: dict[str, str], name: str) -> None:
    target = parse_target(text)
    assert (target.ep, dict(target.options), target.name) == (OPENVINO, options, name)


@pytest.mark.parametrize("text", ["x:cpu", "=openvino", "openvino:fpga", "openvino,x"])
def test_wrong_targets_are_usage_errors(text: str, model: Path, invoke: Invoke) -> None:
    result = invoke("package", "build", model, "-o", "p", "-t", text)
    assert result.code == ExitCode.USAGE
    assert not (model.parent / "p").exists()


def test_rows_of_a_matrix_become_variants(model: Path, invoke: Invoke) -> None:
    matrix = Path(__file__).parents[3] / "hw_matrix.yaml"
    arguments = ["package", "build", model, "-o", "p", "-f", matrix]
    rows = ["--row", "openvino-cpu[openvino=2026.4.1,embed=0]", "--row", "openvino-npu-4000"]
    refused = invoke(*arguments, *rows)
    if refused.code == ExitCode.OK:  # OpenVINO's package for Windows has Intel's NPU compiler
        assert "openvino-npu-4000" in refused.out
        return
    assert refused.code == ExitCode.NO_HARDWARE
    assert "--skip-missing" in refused.err
    result = invoke(*arguments, *rows, "--skip-missing", "--json")
    assert result.code == ExitCode.OK, result.err
    assert "source" in result.json["variants"]
    assert "openvino-npu-4000" in " ".join(result.json["skipped_rows"])


def test_packages_are_built_changed_and_verified_as_archives(
    model: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(model.parent / "cache"))
    make_key(model.parent, "release")
    assert invoke("package", "build", model, "-o", "p.zip", "-t", "openvino:cpu").code == 0
    again = invoke("package", "build", model, "-o", "p.zip", "-t", "openvino:cpu")
    assert "p.zip exists already: --force replaces it" in again.err
    assert invoke("package", "sign", "p.zip", "--key", "release.key").code == 0
    assert "signed by" in invoke("package", "verify", "p.zip", "--trust", "release.pub").out
    pruned = invoke("package", "prune", "p.zip", "--keep", "openvino-cpu", "-o", "q.tar.gz")
    assert pruned.out.startswith("q.tar.gz: openvino-cpu;")
    assert "openvino-cpu" in invoke("package", "inspect", "q.tar.gz").out
    chosen = invoke("package", "select", "q.tar.gz", "--ep", "openvino")
    assert chosen.out.startswith("q.tar.gz, component model: openvino-cpu")
    assert sorted(path.name for path in model.parent.glob("[pq].*")) == ["p.zip", "q.tar.gz"]


def test_a_file_that_is_no_package_is_not_replaced(model: Path, invoke: Invoke) -> None:
    Path("p.zip").write_bytes(b"a diary")
    result = invoke("package", "build", model, "-o", "p.zip", "--force")
    assert result.code != 0
    assert "is not a model package" in result.err
    assert Path("p.zip").read_bytes() == b"a diary"


def test_check_judges_a_package_and_other_commands_name_inspect(
    package: str, invoke: Invoke
) -> None:
    checked = invoke("check", package, "--ep", "openvino")
    selected = invoke("package", "select", package, "--ep", "openvino")
    assert (checked.code, checked.out) == (selected.code, selected.out)
    assert checked.code == ExitCode.OK
    inspected = invoke("inspect", package)
    assert inspected.code != ExitCode.OK
    assert "It is a model package" in inspected.err
    assert "package inspect" in inspected.err


def test_a_target_whose_device_is_absent_is_exit_code_3(invoke: Invoke, model: Path) -> None:
    output = model.with_name("gpu.ortpackage")
    refused = invoke("package", "build", model, "-o", output, "-t", "openvino,device_type=GPU.7")
    assert refused.code == ExitCode.NO_HARDWARE, refused
    assert "'GPU.7'" in refused.err
    assert "ort-lite doctor" in refused.err
    assert not output.exists()
