"""benchmarks/wild: models out of packages, a process of each engine, and what misses a limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from small_models import feed, mlp

from benchmarks.harness.measure import Measurement
from benchmarks.harness.samples import Sample
from benchmarks.wild.found_models import Finder, Unmeasured
from benchmarks.wild.wild_table import SHOWN, medians, misses, tables

ROOT = Path(__file__).parents[3]
ORT = "onnxruntime[CPU]"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.onnx"
    path.write_bytes(mlp("N").SerializeToString())
    return path


def measured(process: Path, *arguments: str) -> dict:
    command = [sys.executable, str(ROOT / "benchmarks/harness/launch.py")]
    done = subprocess.run(
        [*command, "benchmarks.wild.wild_process", *arguments],
        cwd=process,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_the_command_measures_a_file(model: Path, tmp_path: Path) -> None:
    stored = tmp_path / "measured.json"
    arguments = ["--models", str(model), "--engines", "CPU", "--turns", "1", "--json", str(stored)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.wild.wild", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "mlp " in done.stdout
    found = json.loads(stored.read_text())["mlp"]
    for variant in (ORT, "ort_lite[CPU]"):
        assert not found[variant]["absent"]
        assert found[f"{variant} load"]["turns"][0] < found[variant]["turns"][0]
        assert found[f"{variant} run"]["turns"][0] < found[variant]["turns"][0]
        assert found[variant]["facts"]["difference"] < 1e-5


def test_a_process_keeps_its_outputs_or_says_why_it_has_none(model: Path, tmp_path: Path) -> None:
    arrays = feed(mlp(3))
    told = []
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        told += [name, str(tmp_path / f"{name}.npy")]
    output = tmp_path / "out.npz"
    answer = measured(tmp_path, "ort_lite[CPU]", str(model), "", str(output), *told)
    assert set(answer["steps"]) == {"load", "run", "run cpu", "cpu"}
    (expected,) = ReferenceEvaluator(mlp(3)).run(None, arrays)
    np.testing.assert_allclose(np.load(output)["0"], expected, rtol=1e-4, atol=1e-5)
    model.write_bytes(b"no model")
    answer = measured(tmp_path, "ort_lite[CPU]", str(model), "", str(output), *told)
    assert set(answer) == {"absent"}
    assert "mlp.onnx" in answer["absent"]


def test_a_program_s_models_come_with_what_it_feeds_them(model: Path, tmp_path: Path) -> None:
    program, folder = tmp_path / "program.py", tmp_path / "kept"
    folder.mkdir()
    program.write_text(
        f"""import numpy as np
import onnxruntime
for given in ({str(model)!r}, open({str(model)!r}, "rb").read()):
    session = onnxruntime.InferenceSession(given)
    for rows in (5, 7):
        shape = [rows, session.get_inputs()[0].shape[1]]
        session.run(None, {{"x": np.full(shape, rows, np.float32)}})
"""
    )
    recorder = ROOT / "benchmarks/wild/record_feeds.py"
    subprocess.run([sys.executable, str(recorder), str(folder), str(program)], check=True)
    kept = [Path(json.loads(p.read_text())["model"]) for p in sorted(folder.glob("*.json"))]
    assert kept == [model, folder / "2.onnx"]
    assert kept[1].read_bytes() == model.read_bytes()
    for number in (1, 2):
        assert np.load(folder / f"{number}.npz")["x"].tolist()[0][0] == 5, "the first run"


def test_files_get_inputs_that_onnxruntime_takes_and_count_once(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "other.onnx").write_bytes(model.read_bytes())
    broken = mlp(2)
    broken.graph.node[0].op_type = "NoSuchOperator"
    (tmp_path / "twice" / "broken.onnx").write_bytes(broken.SerializeToString())
    (tmp_path / "inputs").mkdir()
    found = list(Finder(tmp_path / "inputs").of_files([model, tmp_path / "twice"]))
    assert [type(one) for one in found] == [Sample, Unmeasured]
    sample, unknown = found
    assert isinstance(sample, Sample)
    arrays = dict(np.load(sample.feed))
    assert list(arrays) == [arg.name for arg in onnx.load(model).graph.input]
    assert isinstance(unknown, Unmeasured)
    assert "NoSuchOperator" in unknown.reason


def test_the_table_marks_each_limit_that_is_missed() -> None:
    def found(default: float, cpu: float, apart: float) -> dict[str, Measurement]:
        times = dict.fromkeys((ORT, *SHOWN.values()), 1.0)
        times |= {SHOWN["default"]: default, SHOWN["CPU"]: cpu}
        return {
            name: Measurement(turns=(seconds,), facts={"difference": apart if not step else 0})
            for variant, seconds in times.items()
            for step in ("", " load", " run", " cpu", " run cpu")
            for name in [f"{variant}{step}"]
        }

    fine, slow = found(0.5, 3.4, 0.0), found(1.2, 3.6, 0.0)
    assert misses({"fine": fine}) == []
    assert misses({"slow": slow}) == [
        "slow: ort_lite[default] run 1.20, limit 1.1",
        "slow: ort_lite[default] start 1.20, limit 1.1",
        "slow: ort_lite[CPU] run 3.60, limit 3.5",
    ]
    apart = misses({"wrong": found(0.5, 1.0, 0.5)})
    assert len(apart) == len(SHOWN)
    assert "differs from onnxruntime by 5.0e-01" in apart[0]
    assert ": >0.85" in "".join(medians({"a": found(0.5, 1.0, 0), "b": slow}))
    absent = fine | {SHOWN["OpenCL"]: Measurement(absent="no device")}
    assert misses({"m": absent}) == ["m: ort_lite[OpenCL] does not run: no device"]
    text = tables({"fine": fine, "slow": slow})
    assert text.count(">1.20") == 2
    assert text.count(">3.60") == 1
