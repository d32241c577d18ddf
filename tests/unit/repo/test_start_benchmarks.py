"""Processes that the benchmarks in benchmarks/startup start, and their tables."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino
import pytest
import small_models
from onnx.reference import ReferenceEvaluator

from benchmarks.harness.engine_programs import FLOAT32
from benchmarks.harness.engine_programs import PROGRAMS as ENGINES
from benchmarks.harness.installed import installed_python
from benchmarks.harness.measure import Measurement
from benchmarks.startup.breakdown import COLUMNS, STEPS, rows_of
from benchmarks.startup.breakdown import PROGRAMS as PROFILED
from benchmarks.startup.floor import CACHE, EXTERNAL, FLOOR, PROGRAMS, table

ROOT = Path(__file__).parents[3]
ABSENT = "not on this machine"


def launched(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks/harness/launch.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def written(folder: Path, rows: int | str, given: int) -> tuple[Path, tuple[str, ...]]:
    """A model and its inputs, as the command line of a process names them."""
    path = folder / "model.onnx"
    path.write_bytes(small_models.mlp(rows).SerializeToString())
    told = []
    for name, array in small_models.feed(small_models.mlp(given)).items():
        np.save(folder / f"{name}.npy", array)
        told += [name, str(folder / f"{name}.npy")]
    return path, tuple(told)


@pytest.mark.parametrize("engine", ["ort_lite", "openvino", "onnxruntime[CPU]"])
def test_a_program_answers_as_the_reference(engine: str, tmp_path: Path) -> None:
    proto = small_models.mlp()
    path, _ = written(tmp_path, 2, 2)
    feed = small_models.feed(proto)
    expected = ReferenceEvaluator(proto).run(None, feed)
    found = ENGINES[engine]("")(str(path))(feed)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_a_process_tells_when_it_had_its_answer_and_what_it_took_again(tmp_path: Path) -> None:
    path, inputs = written(tmp_path, "N", 3)
    done = launched(
        "benchmarks.startup.first_answer_process",
        "onnxruntime[CPU]",
        str(path),
        "",
        "numpy",
        "2",
        *inputs,
    )
    told = json.loads(done.stdout)
    assert told["started"] < told["at"]
    assert set(told["steps"]) == {"load"}
    assert told["peak_rss"] > 1 << 20


def test_nothing_comes_in_beside_an_engine() -> None:
    program = f"""import sys
at_first = set(sys.modules)
sys.path.insert(0, {str(ROOT)!r})
import benchmarks.startup.first_answer_process, benchmarks.harness.engine_programs
print(*sorted(set(sys.modules) - at_first), "of", *sorted(at_first))"""
    with installed_python() as python:
        done = subprocess.run(
            [python, "-c", program], stdout=subprocess.PIPE, text=True, check=True
        )
        there = {path.name for path in python.parent.parent.iterdir()}
    brought, _, at_first = done.stdout.partition(" of ")
    assert [name for name in brought.split() if not name.startswith("benchmarks")] == []
    assert not {"pathlib", "_distutils_hack"} & set(at_first.split()), "hooks of a checkout"
    missing = {path.name for path in Path(sys.prefix).iterdir()} - there
    assert not missing, "drivers and libraries that packages bring"


@pytest.mark.parametrize("program", [("-", "never"), ("-", "first"), ("digest", "meanwhile")])
def test_the_floor_gives_its_model_inputs(program: tuple[str, str], tmp_path: Path) -> None:
    path, inputs = written(tmp_path, "N", 3)
    blob = tmp_path / "model.blob"
    compiled = openvino.Core().compile_model(path, "CPU", FLOAT32)
    blob.write_bytes(compiled.export_model().getbuffer())
    told = json.loads(
        launched("benchmarks.startup.floor_process", str(blob), *program, *inputs).stdout
    )
    steps = ("numpy", "before", "import", "after", "feed", "run")
    assert sum(told["steps"][s] for s in steps) == pytest.approx(told["at"] - told["started"])
    np.save(inputs[1], np.zeros((3, 1), np.float32))
    failed = launched("benchmarks.startup.floor_process", str(blob), *program, *inputs)
    assert failed.returncode != 0
    assert "ov_infer_request_" in failed.stderr, "a width that the model does not take"


def test_the_floor_s_table_marks_what_is_more_than_was_asked() -> None:
    seconds = dict.fromkeys(PROGRAMS, 0.3) | {CACHE: 0.5, EXTERNAL: 0.3, FLOOR: 0.25}
    found = {name: Measurement(turns=(value,) * 3) for name, value in seconds.items()}
    found["onnxruntime+openvino embedded"] = Measurement(absent=ABSENT)
    lines = table({"one": found}).splitlines()
    assert lines[1].split() == ["asked", "0.65x", "0.80x", "0.40x"]
    rows = [re.split(" {2,}", line.strip()) for line in lines]
    assert [FLOOR, "250", "250", "0.50x", ">0.83x", "-"] in rows
    assert f"-: {ABSENT}" in lines


def test_a_profile_tells_what_is_more_than_the_floor() -> None:
    times: dict[str, tuple[float, ...]] = {}
    for program, (floor, _) in PROFILED.items():
        for step in ("", *STEPS):
            times[f"{floor} {step}".rstrip()] = (0.010, 0.020, 0.020)
            times[f"ort_lite, {program} {step}".rstrip()] = (0.015, 0.021, 0.024)
        times[f"ort_lite, {program} digest"] = (0.001,) * 3
        times[f"ort_lite, {program} again"] = (0.002,) * 3
        for step, alone in {
            "python": 0.002,
            "packages": 0.001,
            "ours": 0.004,
            "modules": 0.007,
        }.items():
            times[f"imports alone, {program} {step}"] = (alone,) * 3
        times[f"imports beside libraries, {program} modules"] = (0.010,) * 3
    rows = rows_of({name: Measurement(turns=turns) for name, turns in times.items()})
    first, ours, more = (dict(zip(COLUMNS, row, strict=True)) for row in rows[:3])
    assert (first["before"], ours["before"], more["before"]) == ("20.0", "21.0", "4.0")
    assert [ours[part] for part in COLUMNS[-7:]] == [
        *("2.0", "1.0", "4.0"),
        *("3.0", "1.0", "2.0", "8.0"),
    ]
