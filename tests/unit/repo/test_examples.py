"""The short programs in examples/ run as printed, and show what they say."""

from __future__ import annotations

import runpy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.decoders.make_decoder import SHAPES, make_decoder

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[3] / "examples"
MOST_LINES = 30


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs an example in an empty folder; what it prints."""
    monkeypatch.chdir(tmp_path)

    def run_example(name: str, *arguments: object) -> str:
        monkeypatch.setattr("sys.argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def test_a_compiled_model_is_shipped_and_reloaded(
    run: Callable[..., str], model_path: Callable[[str], Path]
) -> None:
    files = run("compile_and_ship.py", model_path("squeezenet_rw"))
    assert "shipped.onnx" in files
    assert "shipped_OpenVINOExecutionProvider.bin" in files
    answer = run("reload.py", "shipped.onnx")
    assert "(1, 1000, 1, 1)" in answer or "(1, 1000)" in answer


def test_two_models_share_one_payload_file(
    run: Callable[..., str], model_path: Callable[[str], Path], tmp_path: Path
) -> None:
    for name in ("one", "two"):
        shutil.copy(model_path("squeezenet_rw"), tmp_path / f"{name}.onnx")
    printed = run("share_weights.py", "one.onnx", "two.onnx")
    assert printed.startswith("2 sessions")
    assert len(list(tmp_path.glob("*.bin"))) == 1


def test_a_custom_kernel_computes_its_node(run: Callable[..., str]) -> None:
    assert "2.28" in run("custom_kernel.py"), "3 * tanh(1)"


def test_the_second_start_is_a_hit(
    run: Callable[..., str], model_path: Callable[[str], Path]
) -> None:
    first, second = run("model_cache.py", model_path("squeezenet_rw")).splitlines()
    assert first.startswith("stored")
    assert second.startswith("hit")


@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16"])
def test_tokens_are_continued_greedily_and_by_sampling(
    run: Callable[..., str], tmp_path: Path, *, half: bool
) -> None:
    model = make_decoder(tmp_path / "decoder", replace(SHAPES["tiny"], half=half))
    greedy, again = (run("generate.py", model, "5,17,3", 6) for _ in range(2))
    assert greedy == again
    assert greedy.startswith("5,17,3,")
    tokens = [int(text) for text in run("generate.py", model, "5,17,3", 6, 0.7).split(",")]
    assert len(tokens) == 9
    assert max(tokens) < SHAPES["tiny"].vocabulary


def test_examples_are_short_and_listed() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"({path.name})" in page
        if path.name != "demo.py":
            assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES, path.name
