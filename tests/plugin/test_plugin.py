"""An EP of somebody else's: installed, found, run, kept in a context, held to the promises."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import helper
from plugin.installed_site import EXAMPLE, SOURCE, Site, in_a_child
from small_models import feed, mlp, model

import ort_lite as ort
from ort_lite.providers import catalog
from ort_lite.testing import ContextFile, oracle_case

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CPU = "CPUExecutionProvider"
CLI = "from ort_lite.cli import main; main()"


def test_it_is_found_before_the_default_ep(installed: Site) -> None:
    assert EXAMPLE in ort.get_available_providers()
    assert ort.get_available_providers()[-1] == CPU
    assert catalog.entries()[EXAMPLE].target == "example_ep:FACTORY"


def test_it_is_gone_where_it_is_not_installed() -> None:
    assert EXAMPLE not in ort.get_available_providers()
    with (
        pytest.warns(UserWarning, match=f"'{EXAMPLE}' is not in available provider names"),
        pytest.raises(ort.InvalidArgument, match=f"Unknown Provider Type: {EXAMPLE}"),
    ):
        ort.InferenceSession(mlp().SerializeToString(), providers=[EXAMPLE], enable_fallback=0)


def test_a_program_that_names_no_provider_gets_it(installed: Site, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    code = (
        "import ort_lite as ort\n"
        "session = ort.InferenceSession('m.onnx')\n"
        "print(session.get_providers()[0], *session.explain().node_counts().items())\n"
    )
    done = in_a_child(installed, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [EXAMPLE, f"('{EXAMPLE}',", "3)"]


def test_the_command_line_lists_its_device(installed: Site, tmp_path: Path) -> None:
    done = in_a_child(installed, "-c", CLI, "devices", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert EXAMPLE in done.stdout
    assert "numpy, as an example" in done.stdout


def test_it_runs_a_model_with_the_reference_s_numbers(installed: Site) -> None:
    case = oracle_case("affine")
    with ort.InferenceSession(case.encode(), providers=[EXAMPLE]) as session:
        assert session.explain().node_counts() == {EXAMPLE: 3}
        for one in case.feeds:
            (found,) = session.run(None, dict(one))
            np.testing.assert_allclose(found, case.expected_outputs(one)[0], rtol=1e-5, atol=1e-6)


def test_its_options_are_checked_by_name_and_by_value(installed: Site) -> None:
    data = mlp().SerializeToString()
    with pytest.raises(ort.InvalidArgument, match=r"key: sum for Example.*\. Known: sum_in"):
        ort.InferenceSession(data, providers=[(EXAMPLE, {"sum": "float64"})])
    with pytest.raises(ort.InvalidArgument, match="sum_in is 'int', expected one of float32"):
        ort.InferenceSession(data, providers=[(EXAMPLE, {"sum_in": "int"})])


def test_an_option_shapes_what_it_compiles(installed: Site) -> None:
    """3e38 * 2 - 3e38 * 2 is 0, and beyond float32 on the way there."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="n")]
    weights = {"w": np.array([[2], [-2]], np.float32)}
    data = model(nodes, [("x", [1, 2])], [("y", [1, 1])], weights).SerializeToString()
    x = {"x": np.array([[3e38, 3e38]], np.float32)}
    found = {}
    for sum_in in ("float32", "float64"):
        with ort.InferenceSession(data, providers=[(EXAMPLE, {"sum_in": sum_in})]) as session:
            found[sum_in] = session.run(None, x)[0].item()
    assert not np.isfinite(found["float32"])
    assert found["float64"] == 0


@pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])
def test_a_context_written_in_one_process_runs_in_another(
    installed: Site, tmp_path: Path, *, embed: bool
) -> None:
    proto = mlp()
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    np.savez(tmp_path / "feed.npz", **feed(proto))
    compile_ = ["compile", "m.onnx", "--ep", EXAMPLE, *(["--embed"] if embed else [])]
    done = in_a_child(installed, "-c", CLI, *compile_, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "m.onnx").rename(tmp_path / "source.onnx")
    code = (
        "import sys\n"
        "import ort_lite as ort\n"
        "import numpy as np\n"
        "feed = dict(np.load('feed.npz'))\n"
        f"with ort.InferenceSession('m_ctx.onnx', providers=['{EXAMPLE}']) as session:\n"
        "    (part,) = session.explain().partitions\n"
        "    assert part.origin == 'context'\n"
        "    np.savez('found.npz', *session.run(None, feed))\n"
        "assert 'onnx' not in sys.modules\n"
    )
    done = in_a_child(installed, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with ort.InferenceSession(tmp_path / "source.onnx", providers=[EXAMPLE]) as session:
        expected = session.run(None, feed(proto))
    np.testing.assert_array_equal(np.load(tmp_path / "found.npz")["arr_0"], expected[0])


def test_a_context_names_its_source_and_identity(installed: Site, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    ort.InferenceSession(tmp_path / "m.onnx", options, providers=[EXAMPLE]).close()
    made = ContextFile(tmp_path / "m_ctx.onnx", tmp_path / f"m_{EXAMPLE}.bin")
    (node,) = made.nodes()
    assert (node.source, node.ep_sdk_version) == (EXAMPLE, "1.0.0")
    assert node.partition_name.startswith(EXAMPLE)
    (verdict,) = ort.check_compatibility(made.path)
    assert verdict.verdict == ort.CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
    assert verdict.integrity == "verified"


def test_a_context_is_told_apart_where_its_ep_is_not_installed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install(SOURCE)
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    ort.InferenceSession(tmp_path / "m.onnx", options, providers=[EXAMPLE]).close()
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(site.folder)])
    with pytest.raises(ort.NotImplemented, match=f"generated by '{EXAMPLE}' is not compatible"):
        ort.InferenceSession(tmp_path / "m_ctx.onnx", providers=[CPU])
    (verdict,) = ort.check_compatibility(tmp_path / "m_ctx.onnx")
    assert verdict.reason == "source_unknown"
    assert verdict.hint == f"install the execution provider '{EXAMPLE}'"


def test_it_keeps_every_promise_of_an_execution_provider(installed: Site, tmp_path: Path) -> None:
    """As its author runs the suite: in the distribution's own folder."""
    project = tmp_path / "project"
    shutil.copytree(SOURCE, project)
    done = in_a_child(installed, "-m", "pytest", "-p", "no:cacheprovider", cwd=project)
    assert done.returncode == 0, done.stdout
    counts: Mapping[str, int] = {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|skipped)", done.stdout.splitlines()[-1])
    }
    assert counts["passed"] > 150
    assert counts["passed"] > 4 * counts["skipped"]
    assert "keeps no contexts" not in done.stdout
