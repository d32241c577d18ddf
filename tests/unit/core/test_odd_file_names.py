"""Files with names that are not UTF-8, and a working folder that is gone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from context_models import OPENVINO
from small_models import feed, mlp
from system_limits import needs_removal_while_open

import ort_lite as ort

EPS = [OPENVINO, "CPUExecutionProvider"]


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A model whose name no text encoding gives."""
    path = tmp_path / "m\udcff.onnx"
    try:
        path.write_bytes(mlp().SerializeToString())
    except OSError as exc:
        pytest.skip(f"the file system does not accept such names: {exc}")
    return path


def options(**entries: str | Path) -> ort.SessionOptions:
    made = ort.SessionOptions()
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), os.fspath(value))
    return made


def answer(path: Path, used: ort.SessionOptions | None = None) -> np.ndarray:
    with ort.InferenceSession(path, used, providers=EPS) as session:
        return session.run(None, feed(mlp()))[0]


def test_the_model_cache_keeps_a_model_with_any_name(odd: Path, tmp_path: Path) -> None:
    cache = {
        "session.ep_context_cache": "1",
        "session.ep_context_cache_dir": tmp_path / "cache",
    }
    expected = answer(odd)
    for state in ("stored", "hit"):
        with ort.InferenceSession(odd, options(**cache), providers=EPS) as session:
            np.testing.assert_array_equal(session.run(None, feed(mlp()))[0], expected)
            found = session.load_report().cache
            assert found is not None
            assert found.state == state


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_context_of_a_model_with_any_name_is_written_and_reloaded(
    odd: Path, tmp_path: Path, embed: str
) -> None:
    out = tmp_path / "out.onnx"
    used = options(ep__context_enable="1", ep__context_embed_mode=embed, ep__context_file_path=out)
    np.testing.assert_array_equal(answer(odd, used), answer(out))


def test_payload_names_that_a_node_cannot_hold_are_refused_before_compiling(odd: Path) -> None:
    with pytest.raises(ort.InvalidArgument, match=r"not UTF-8.*set ep\.context_file_path"):
        answer(odd, options(ep__context_enable="1"))
    assert [path.name for path in odd.parent.iterdir()] == [odd.name]


def test_an_embedded_context_may_have_any_name(odd: Path) -> None:
    answer(odd, options(ep__context_enable="1", ep__context_embed_mode="1"))
    assert answer(odd.with_name("m\udcff_ctx.onnx")).shape == answer(odd).shape


def test_log_lines_with_any_name_reach_a_log_file(
    odd: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    handler = logging.FileHandler(tmp_path / "log", encoding="utf-8")
    logger = logging.getLogger("ort_lite")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.DEBUG, "ort_lite"):
            answer(odd)
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert r"m\udcff.onnx" in (tmp_path / "log").read_text("utf-8")


@needs_removal_while_open
@pytest.mark.skipif(
    (3, 13) <= sys.version_info < (3, 13, 3),
    reason="this CPython cannot look for an attribute of a module there: gh-130932",
)
def test_a_session_from_bytes_needs_no_working_folder(tmp_path: Path) -> None:
    script = """
import os, sys
folder = sys.argv[1]
os.mkdir(folder)
os.chdir(folder)
os.rmdir(folder)
sys.path.insert(0, "")
import ort_lite as ort
model = sys.stdin.buffer.read()
print(ort.InferenceSession(model, providers=["CPUExecutionProvider"]).get_providers())
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "gone"],
        input=mlp().SerializeToString(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[3])},
        check=False,
    )
    assert done.stdout == b"['CPUExecutionProvider']\n", done.stderr.decode()
