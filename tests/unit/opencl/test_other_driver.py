"""A context that another driver of the same device made: the verdict, the refusal, the rebuild."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from small_models import feed, mlp

import ort_lite as ort
from ctx_formats.errors import Reason
from eps.opencl import provider
from eps.opencl.payload import import_payload as reload
from ort_lite.check import check_compatibility
from ort_lite.cli.app import run_command
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.ep.interface import CompiledModelCompatibility

if TYPE_CHECKING:
    from pathlib import Path

OPENCL = "OpenCLExecutionProvider"
BETTER = CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION
REBUILDING = [(OPENCL, {"rebuild": "true"})]


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A context of a driver 0.0; its binaries are never given to the one that is here."""
    real = provider.read_identity  # type: ignore[attr-defined] # patched where it is used
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(tmp_path / "m.onnx"))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(
            provider, "read_identity", lambda found: replace(real(found), driver_version="0.0")
        )
        ort.InferenceSession(mlp().SerializeToString(), config, providers=[OPENCL]).close()

    def loaded(*arguments: Any) -> Any:
        raise AssertionError(f"a foreign binary is loaded: {arguments}")

    monkeypatch.setattr(reload, "load", loaded)
    return tmp_path / "m.onnx"


def test_a_session_refuses_it_and_says_both_ways_out(context: Path) -> None:
    with pytest.raises(ort.InvalidGraph, match=r"driver_version: built with '0\.0'") as found:
        ort.InferenceSession(context, providers=[OPENCL])
    assert found.value.reason == Reason.DRIVER_VERSION
    assert "rebuild=true" in found.value.hint
    assert "ort-lite compile" in found.value.hint


def test_a_session_that_may_rebuild_runs_it_with_a_warning(
    context: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ort.InferenceSession(mlp().SerializeToString(), providers=[OPENCL]) as session:
        (right,) = session.run(None, feed(mlp()))
    with (
        caplog.at_level("WARNING", "ort_lite"),
        ort.InferenceSession(context, providers=REBUILDING) as session,
    ):
        np.testing.assert_array_equal(session.run(None, feed(mlp()))[0], right)
    assert "driver_version: built with '0.0'" in caplog.text


def test_it_fails_where_what_is_suboptimal_is_to_fail(context: Path) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.fail_on_suboptimal_compiled_model", "1")
    with pytest.raises(ort.Fail, match="Compiled model is suboptimal"):
        ort.InferenceSession(context, options, providers=REBUILDING)


def test_the_verdict_is_to_compile_again(context: Path) -> None:
    """With a reason and a way out where a session would refuse it, and without where it runs."""
    (plain,) = check_compatibility(context, providers=[OPENCL])
    assert (plain.verdict, plain.reason) == (BETTER, Reason.DRIVER_VERSION)
    assert "rebuild=true" in plain.hint
    (rebuilding,) = check_compatibility(context, providers=REBUILDING)
    assert (rebuilding.verdict, rebuilding.reason) == (BETTER, None)
    info = ort.get_compatibility_info_from_model(str(context), OPENCL)
    assert info is not None
    devices = [d for d in ort.get_ep_devices() if d.ep_name == OPENCL][:1]
    assert ort.get_model_compatibility_for_ep_devices(devices, info) == BETTER


def test_the_command_says_whether_a_session_would_load_it(
    context: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["check", str(context), "-e", "opencl", "--json"]
    assert run_command(arguments) == ExitCode.INVALID_GRAPH
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["verdict"], node["reason"]) == (BETTER.name, "driver_version")
    assert run_command([*arguments, "-O", "rebuild=true"]) == ExitCode.OK
