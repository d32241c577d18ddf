"""Providers, model cache and report that are chosen from outside a program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import onnx
import pytest
from small_models import model
from stand_in_programs import python, stand_in
from system_limits import WINDOWS, needs_posix

from ort_lite.as_onnxruntime.provider_text import parse_providers, provider_list

if TYPE_CHECKING:
    from pathlib import Path

POLICY = "ort.OrtExecutionProviderDevicePolicy.PREFER_CPU"
CPU, OPENVINO = "CPUExecutionProvider", "OpenVINOExecutionProvider"
RUN = """
import numpy, onnxruntime as ort, sys
options = ort.SessionOptions()
{before}
session = ort.InferenceSession(sys.argv[1], options{arguments})
for _ in range(3): session.run(None, {{'x': numpy.float32([1, 2])}})
print(session.get_providers(), session.get_provider_options().get('OpenVINOExecutionProvider'))
"""


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "add.onnx"
    node = onnx.helper.make_node("Add", ["x", "x"], ["y"])
    onnx.save(model([node], [("x", [2])], [("y", [2])]), path)
    return path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Asks for the CPU EP by name."""
    path = tmp_path / "program.py"
    path.write_text(RUN.format(before="", arguments=f", ['{CPU}']"))
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openvino", [(OPENVINO, {})]),
        (" OpenVINOExecutionProvider , cpu ", [(OPENVINO, {}), (CPU, {})]),
        ("OPENVINO;cpu;", [(OPENVINO, {}), (CPU, {})]),
        (
            "openvino:device_type=CPU,num_of_threads=2;cpu",
            [(OPENVINO, {"device_type": "CPU", "num_of_threads": "2"}), (CPU, {})],
        ),
        ("openvino:device_type=GPU.1", [(OPENVINO, {"device_type": "GPU.1"})]),
        ("openvino:", [(OPENVINO, {})]),
        (
            '[["openvino", {"device_type": "AUTO:GPU,CPU", "num_streams": 2}], "cpu"]',
            [(OPENVINO, {"device_type": "AUTO:GPU,CPU", "num_streams": "2"}), (CPU, {})],
        ),
    ],
)
def test_providers_can_be_written_short_with_options_or_as_json(
    text: str, expected: list[tuple[str, dict[str, str]]]
) -> None:
    assert list(parse_providers(text, "X")) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuda", r"X: no execution provider 'cuda' is installed; expected one of .*CPUExecution"),
        ("openvino:device_type", "X: 'device_type' after 'openvino' is not a KEY=VALUE"),
        ("openvino:device_type=CPU,cpu", "'cpu' after 'openvino'.*separated by ';'"),
        ("cpu,cpu", "X: CPUExecutionProvider is named twice"),
        (" , ", "X: no execution provider is named"),
        ("[1]", r"X: expected a name or \[name, {options}\], not 1"),
        ('["cpu"', "X begins with .* but is not JSON"),
        (":device_type=CPU", "no execution provider ''"),
    ],
)
def test_providers_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_providers(text, "X")


def test_providers_of_a_call_are_those_of_a_session() -> None:
    found = provider_list(["cpu", ("openvino", {"num_streams": 2})], "providers")
    assert found == ((CPU, {}), (OPENVINO, {"num_streams": "2"}))


@pytest.mark.parametrize(
    ("before", "arguments"),
    [
        ("", ""),
        ("", f", ['{CPU}']"),
        ("", ", provider_options=[{'x': '1'}], providers=['TensorrtExecutionProvider']"),
        (f"options.add_provider('{CPU}', {{}})", ""),
        (
            "options.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_CPU)",
            "",
        ),
    ],
)
def test_providers_from_outside_win_over_what_the_program_asks_for(
    model_file: Path, tmp_path: Path, before: str, arguments: str
) -> None:
    (tmp_path / "program.py").write_text(RUN.format(before=before, arguments=arguments))
    done = stand_in("--providers", "openvino:num_of_threads=1", tmp_path / "program.py", model_file)
    names, _, options = done.stdout.partition("] ")
    assert names == f"['{OPENVINO}', '{CPU}'"
    assert "'num_of_threads': '1'" in options


def test_providers_from_outside_stay_when_the_program_sets_others(model_file: Path) -> None:
    code = (
        "import onnxruntime as ort, sys\nsession = ort.InferenceSession(sys.argv[1])\n"
        f"session.set_providers(['{CPU}'])\nprint(session.get_providers()[0])"
    )
    assert stand_in("--providers", "openvino", "-c", code, model_file).stdout.strip() == OPENVINO


def test_the_environment_chooses_and_wins_over_the_call(model_file: Path) -> None:
    code = (
        "import ort_lite; ort_lite.as_onnxruntime(providers=['cpu'])\n"
        "import onnxruntime as ort, sys\n"
        "print(ort.InferenceSession(sys.argv[1]).get_providers()[0])"
    )
    assert python("-c", code, model_file).stdout.strip() == CPU
    chosen = {"ORT_LITE_PROVIDERS": "openvino"}
    assert python("-c", code, model_file, variables=chosen).stdout.strip() == OPENVINO


def test_an_environment_that_cannot_be_read_is_an_error_of_the_import() -> None:
    """And no ImportError, which programs take for "onnxruntime is not installed"."""
    code = "try:\n import onnxruntime\nexcept ImportError:\n print('not installed')"
    done = stand_in("-c", code, variables={"ORT_LITE_PROVIDERS": "cuda"}, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ValueError: ORT_LITE_PROVIDERS: no execution provider 'cuda'" in done.stderr


def test_the_compiler_compiles_for_providers_from_outside(model_file: Path) -> None:
    code = (
        "import onnx, onnxruntime as ort, sys\n"
        "data = ort.ModelCompiler(ort.SessionOptions(), sys.argv[1], True).compile_to_bytes()\n"
        "print([node.op_type for node in onnx.load_from_string(data).graph.node])"
    )
    assert stand_in("--providers", "openvino", "-c", code, model_file).stdout == "['EPContext']\n"


def test_a_program_that_names_no_provider_gets_the_cpu_ep_alone(model_file: Path) -> None:
    code = (
        "import onnxruntime as ort, sys\nprint(ort.InferenceSession(sys.argv[1]).get_providers())"
    )
    assert stand_in("-c", code, model_file).stdout == f"['{CPU}']\n"


def test_the_cache_from_outside_stores_and_hits_and_the_report_says_so(
    model_file: Path, program: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    states = []
    for _ in range(2):
        done = stand_in(
            *("--providers", "openvino", f"--cache={tmp_path / 'cache'}", f"--report={report}"),
            *(program, model_file),
        )
        assert done.stderr == ""
        (session,) = json.loads(report.read_text())["sessions"]
        assert session["model"] == str(model_file)
        assert session["providers"] == [OPENVINO, CPU]
        assert session["nodes"] == {OPENVINO: 1}
        assert session["runs"]["count"] == 3
        assert 0 < session["runs"]["first_s"] <= session["runs"]["total_s"]
        assert session["load"]["total_s"] > 0
        states.append(session["load"]["cache"]["state"])
    assert states == ["stored", "hit"]


def test_the_report_goes_to_stderr_and_never_to_stdout(model_file: Path, program: Path) -> None:
    done = stand_in("--report", program, model_file)
    assert done.stdout == f"['{CPU}'] None\n"
    header, line = done.stderr.splitlines()
    assert header.startswith("ort_lite in place of onnxruntime, process ")
    assert line.startswith(f"  {model_file}: nodes: {CPU} 1; loaded in ")
    assert "model cache: off; runs: 3 in " in line


def test_a_session_that_fails_is_in_the_report(tmp_path: Path) -> None:
    code = f"import onnxruntime\nonnxruntime.InferenceSession({str(tmp_path / 'no.onnx')!r})"
    done = stand_in("--report", "-c", code, check=False)
    assert done.returncode == 1
    assert f"{tmp_path / 'no.onnx'}: no session: [ONNXRuntimeError] : 3 :" in done.stderr


def test_calls_and_a_change_of_providers_are_counted_in_the_report(
    model_file: Path, tmp_path: Path
) -> None:
    code = (
        "import numpy, onnxruntime as ort, sys, threading\n"
        "session = ort.InferenceSession(open(sys.argv[1], 'rb').read())\n"
        "feed = {'x': numpy.float32([1, 2])}\ndone = threading.Event()\n"
        "session.run_async(None, feed, lambda *_: done.set(), None)\nassert done.wait(60)\n"
        "value = ort.OrtValue.ortvalue_from_numpy(feed['x'])\n"
        "session.run_with_ort_values(None, {'x': value})\n"
        "binding = session.io_binding()\nbinding.bind_cpu_input('x', feed['x'])\n"
        "binding.bind_output('y')\nsession.run_with_iobinding(binding)\n"
        "session.set_providers(['CPUExecutionProvider'])\nsession.run(None, feed)\n"
    )
    report = tmp_path / "report.json"
    stand_in(f"--report={report}", "-c", code, model_file)
    sessions = json.loads(report.read_text())["sessions"]
    size = f"{model_file.stat().st_size:,} bytes"
    assert [(s["model"], s["runs"]["count"]) for s in sessions] == [(size, 3), (size, 1)]


@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=needs_posix)])
def test_each_process_that_has_sessions_adds_a_line_to_the_report(
    model_file: Path, tmp_path: Path, method: str
) -> None:
    (tmp_path / "program.py").write_text(
        "import multiprocessing as mp, sys\n"
        "def load(path):\n"
        "    import onnxruntime\n"
        "    onnxruntime.InferenceSession(path)\n"
        "if __name__ == '__main__':\n"
        "    load(sys.argv[1])\n"
        f"    worker = mp.get_context('{method}').Process(target=load, args=sys.argv[1:])\n"
        "    worker.start(); worker.join(); sys.exit(worker.exitcode)\n"
    )
    report = tmp_path / "report.json"
    stand_in(f"--report={report}", tmp_path / "program.py", model_file)
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [len(line["sessions"]) for line in lines] == [1, 1]
    assert len({line["pid"] for line in lines}) == 2


def test_a_report_that_cannot_be_written_is_said_on_stderr(
    model_file: Path, program: Path, tmp_path: Path
) -> None:
    place = {"ORT_LITE_REPORT": str(tmp_path / "missing" / "report.json")}
    done = stand_in(program, model_file, variables=place)
    assert "ort_lite: the report cannot be written to " in done.stderr


def test_a_report_option_that_names_no_file_is_refused(tmp_path: Path) -> None:
    done = stand_in(f"--report={tmp_path}", "-c", "print('started')", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--report" in done.stderr


def test_an_empty_cache_option_means_the_user_s_folder(tmp_path: Path) -> None:
    code = "import os; print(os.environ['ORT_LITE_CACHE_DIR'])"
    home = {"LOCALAPPDATA" if WINDOWS else "XDG_CACHE_HOME": str(tmp_path)}
    assert stand_in("--cache", "-c", code, variables=home).stdout.strip().startswith(str(tmp_path))


def test_the_cache_of_the_call_is_used(model_file: Path, tmp_path: Path) -> None:
    code = (
        "import ort_lite\n"
        f"ort_lite.as_onnxruntime(cache={str(tmp_path / 'c')!r}, providers='openvino')\n"
        "import onnxruntime as ort, sys\n"
        "print(ort.InferenceSession(sys.argv[1]).load_report().cache.state)"
    )
    states = [python("-c", code, model_file).stdout.strip() for _ in range(2)]
    assert states == ["stored", "hit"]
