"""Context models of another day and another OpenVINO: read, judged, and never run wrong.

`ort-lite hw crossload` makes contexts with 2025.4.1 and 2026.4.1 in environments of their own and
offers each to the other; these files show the same without a second environment.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ctx_formats.notes import read_notes
from ort_lite.testing.context_file import ContextFile, remove_digests

HERE = Path(__file__).parent
EP = "OpenVINOExecutionProvider"
FOLDERS = sorted(HERE.glob("openvino_*"))


@dataclass(frozen=True)
class Golden:
    """A copy of one of the folders."""

    version: str
    file: ContextFile
    output: np.ndarray

    @property
    def fits(self) -> bool:
        """Whether the OpenVINO at hand has made it."""
        return version("openvino") == self.version


@pytest.fixture(params=FOLDERS, ids=[folder.name for folder in FOLDERS])
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    folder = tmp_path / "golden"
    shutil.copytree(request.param, folder)
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return Golden(
        version=request.param.name.removeprefix("openvino_"),
        file=ContextFile(folder / "mlp_ctx.onnx", folder / f"mlp_ctx_{EP}.bin"),
        output=np.array(about["outputs"]["y"], np.float32),
    )


def test_there_are_files_of_two_versions() -> None:
    assert [folder.name for folder in FOLDERS] == ["openvino_2025.4.1", "openvino_2026.4.1"]


def test_old_files_stay_readable(golden: Golden) -> None:
    container = read_container(memoryview(golden.file.container()))
    (node,) = golden.file.nodes()
    notes = read_notes(node)
    assert notes is not None
    assert notes.identity.sdk_version == node.ep_sdk_version == golden.version
    assert len(container.read_payload(node.partition_name)) == notes.payload_size


def test_a_check_names_the_version_that_made_it(golden: Golden) -> None:
    (verdict,) = ort.check_compatibility(golden.file.path)
    assert verdict.recorded is not None
    assert verdict.recorded.sdk_version == golden.version
    assert verdict.integrity == "verified"
    if not golden.fits:
        assert verdict.reason == "sdk_version"
        assert f"built with '{golden.version}', here '{version('openvino')}'" in verdict.message
        assert "ort-lite compile" in verdict.hint


def test_it_computes_right_or_is_refused(golden: Golden) -> None:
    """Where the version fits, another processor may not."""
    found = answer_or_reason(golden.file)
    if isinstance(found, str):
        assert found == ("hardware_architecture" if golden.fits else "sdk_version")
        (verdict,) = ort.check_compatibility(golden.file.path)
        assert verdict.reason == found
    else:
        assert golden.fits
        np.testing.assert_allclose(found, golden.output, rtol=1e-5)


def test_one_that_lies_about_its_version_computes_right_or_is_refused(golden: Golden) -> None:
    """Without digests and notes, its node claims the OpenVINO at hand."""
    golden.file.put_container(remove_digests(golden.file.container()))
    here = version("openvino")
    golden.file.edit(lambda node: replace(node, notes="", ep_sdk_version=here))
    found = answer_or_reason(golden.file)
    if isinstance(found, str):
        assert found in ("sdk_version", "hardware_architecture", "vendor_rejected")
    else:
        assert golden.fits
        np.testing.assert_allclose(found, golden.output, rtol=1e-5)


def answer_or_reason(file: ContextFile) -> np.ndarray | str:
    about = json.loads((file.path.parent / "about.json").read_text(encoding="utf-8"))
    feed = {name: np.array(value, np.float32) for name, value in about["inputs"].items()}
    try:
        with ort.InferenceSession(file.path, providers=[EP]) as session:
            return session.run(None, feed)[0]
    except ort.InvalidGraph as exc:
        return str(exc.reason)
