"""A starter file for one's own models is a matrix that holds, outside this repository."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from unit.cli.conftest import write_dense
from unit.cli.test_documented_commands import split_like_cmd, split_like_powershell

from ort_lite.cli.app import run_command
from ort_lite.cli.hw_project import next_command
from ort_lite.hw.facts import MachineFacts
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.requirements import machine_lacks
from ort_lite.hw.rows import expand
from ort_lite.hw.starter_matrix import installation_source, starter
from ort_lite.version import VERSION


def test_a_project_of_one_s_own_begins_with_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").mkdir()
    write_dense(tmp_path / "models/dense.onnx")
    monkeypatch.chdir(tmp_path)
    assert run_command(["hw", "init", "models/dense.onnx", "--project", "mine: all"]) == 0
    matrix = read_matrix(tmp_path / "hw_matrix.yaml")
    assert matrix.project == "mine: all"
    assert matrix.models["dense"].path == "models/dense.onnx"
    assert matrix.suites["models"].models == ("dense",)  # type: ignore[union-attr] # of this kind
    assert run_command(["hw", "plan"]) == 0
    assert run_command(["hw", "init", "models/dense.onnx"]) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize("os", ["windows", "linux"])
def test_a_starter_file_s_rows_are_for_every_system(tmp_path: Path, os: str) -> None:
    """Both show without an SDK that a GPU or NPU is absent."""
    path = tmp_path / "hw_matrix.yaml"
    path.write_text(starter("p", [tmp_path / "net.onnx"], "ort-lite"), encoding="utf-8")
    facts = MachineFacts(os=os, machine="AMD64", cpu="any", cores=4, isa=())
    reasons = {row: machine_lacks(one, facts) for row, one in expand(read_matrix(path)).items()}
    assert len(reasons) == 4
    assert sum(map(bool, reasons.values())) == 2


def test_a_model_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["hw", "init", "dense.onnx"]) == 2
    assert "dense.onnx does not exist" in capsys.readouterr().err
    assert not (tmp_path / "hw_matrix.yaml").exists()


def test_models_of_one_name_are_told_apart_and_come_from_the_index(tmp_path: Path) -> None:
    path = tmp_path / "hw_matrix.yaml"
    models = [tmp_path / "a" / "net.onnx", tmp_path / "b" / "net.onnx"]
    path.write_text(starter("p", models, f"ort-lite=={VERSION}"), encoding="utf-8")
    matrix = read_matrix(path)
    assert list(matrix.models) == ["net", "net-2"]
    assert matrix.defaults.packages[0].startswith("ort-lite==")
    assert matrix.defaults.install == ()
    assert matrix.defaults.setup == (f'python -m pip install "ort-lite[cli]=={VERSION}"',)


@pytest.mark.parametrize(
    ("direct_url", "requirement"),
    [
        (None, f"ort-lite=={VERSION}"),
        ({"url": "file:///src/ort_lite", "dir_info": {}}, "ort-lite @ file:///src/ort_lite"),
        (
            {"url": "file:///w.whl", "archive_info": {"hashes": {"sha256": "abc"}}},
            "ort-lite @ file:///w.whl#sha256=abc",
        ),
        (
            {
                "url": "https://example.org/ort_lite.git",
                "vcs_info": {"vcs": "git", "commit_id": "123"},
            },
            "ort-lite @ git+https://example.org/ort_lite.git@123",
        ),
        (
            {"url": "file:///r.git", "vcs_info": {"vcs": "git", "commit_id": "123"}},
            "git+file:///r.git@123",
        ),
    ],
    ids=["index", "folder", "wheel", "revision", "revision-of-a-local-clone"],
)
def test_rows_install_what_init_was_installed_from(
    direct_url: object, requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip records it: PEP 610."""

    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return json.dumps(direct_url) if direct_url is not None else None

    monkeypatch.setattr("ort_lite.hw.starter_matrix.__file__", str(tmp_path / "a/b/starter.py"))
    monkeypatch.setattr("ort_lite.hw.starter_matrix.distribution", lambda _: Installed())
    assert installation_source() == requirement
    path = tmp_path / "hw_matrix.yaml"
    path.write_text(starter("p", [tmp_path / "net.onnx"], requirement), encoding="utf-8")
    defaults = read_matrix(path).defaults
    assert defaults.packages[0] == requirement
    (command,) = defaults.setup
    assert "ort-lite[cli]" in command
    words = shlex.split(command)
    assert split_like_cmd(command) == words
    assert split_like_powershell(command) == words


def test_the_next_command_names_the_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dense(tmp_path / "dense.onnx")
    monkeypatch.chdir(tmp_path)
    assert run_command(["hw", "init", "dense.onnx"]) == 0
    assert capsys.readouterr().out.endswith("; next: ort-lite hw plan\n")
    assert run_command(["hw", "init", "dense.onnx", "--file", "my matrix.yaml"]) == 0
    shown = capsys.readouterr().out.strip()
    assert shown.endswith('; next: ort-lite hw plan --file "my matrix.yaml"')
    assert run_command(shlex.split(shown.partition("; next: ort-lite ")[2])) == 0
    assert next_command("report", Path("m.yaml"), Path("a b")) == (
        'ort-lite hw report "a b" --file m.yaml'
    )
    assert run_command(["hw", "plan", "--file", "none.yaml"]) == 2
    assert "ort-lite hw init MODEL" in capsys.readouterr().err


def test_a_model_on_another_drive_keeps_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_another_drive(path: Path, start: Path) -> str:
        raise ValueError(f"path is on mount {path!s}, start on mount {start!s}")

    model = write_dense(tmp_path / "dense.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ort_lite.cli.hw.os.path.relpath", on_another_drive)
    assert run_command(["hw", "init", "dense.onnx"]) == 0
    assert read_matrix(tmp_path / "hw_matrix.yaml").models["dense"].path == model.as_posix()
