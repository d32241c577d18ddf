"""`ort-lite share`, and the tool under its old name."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from context_models import OPENVINO
from small_models import feed, mlp, sandwich

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Invoke

BIN = f"a_{OPENVINO}.bin"
FILES = sorted(["a.onnx", "a_ctx.onnx", BIN, "b.onnx", "b_ctx.onnx"])


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, proto in zip(paths, (mlp(), sandwich()), strict=True):
        path.write_bytes(proto.SerializeToString())
    return paths


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def check(two: tuple[Path, Path]) -> None:
    for path, proto in zip(two, (mlp(), sandwich()), strict=True):
        context = path.with_name(f"{path.stem}_ctx.onnx")
        with ort.InferenceSession(path, providers=[OPENVINO]) as plain:
            expected = plain.run(None, feed(proto))[0]
        with ort.InferenceSession(context, providers=[OPENVINO]) as session:
            np.testing.assert_array_equal(session.run(None, feed(proto))[0], expected)


def test_n_models_give_n_plus_one_files(invoke: Invoke, two: tuple[Path, Path]) -> None:
    done = invoke("share", "-e", "openvino", *two, "--json")
    assert done.code == 0
    folder = two[0].parent
    assert names(folder) == FILES
    listed = [file["path"] for file in done.json["files"]]
    assert listed == [str(folder / n) for n in ("a_ctx.onnx", "b_ctx.onnx", BIN)]
    check(two)


def test_the_flags_of_the_old_tool_are_taken(invoke: Invoke, two: tuple[Path, Path]) -> None:
    done = invoke(
        *("share", "-e", "openvino", "-v", "-i", "device_type|CPU num_of_threads|1"),
        *("-C", "ep.context_node_name_prefix|p_ session.disable_model_compile|0"),
        f"{two[0]},{two[1]}",
    )
    assert done.code == 0
    assert names(two[0].parent) == FILES
    assert done.out.count("\n") == 3
    (verdict,) = ort.check_compatibility(two[0].with_name("a_ctx.onnx"))
    assert verdict.node.startswith("p_")
    check(two)


def test_the_old_name_is_a_command(two: tuple[Path, Path]) -> None:
    script = "from ort_lite.cli import share_main; share_main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "-e", "openvino", f"{two[0]},{two[1]}"],
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert names(two[0].parent) == FILES


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-e", "openvino", "-i", "device_type"], "expected KEY|VALUE"),
        (["-e", "openvino", "-i", "a|1 a|2"], "-i: a is set twice"),
        (["-i", "a|1"], "options of one execution provider; name it with -e"),
        (["-C", "ep.context_file_path|x.onnx"], "each model has its own"),
        (["-C", "ep.context_embed_mode|1"], "ep.context_embed_mode is always 0"),
        (["-C", "k|1 k|2"], "-C: k is set twice"),
    ],
)
def test_wrong_usage_is_told(
    invoke: Invoke, two: tuple[Path, Path], arguments: list[str], text: str
) -> None:
    done = invoke("share", *arguments, *two)
    assert done.code == 2
    assert text in done.err
    assert names(two[0].parent) == ["a.onnx", "b.onnx"]


def test_no_model_is_wrong_usage(invoke: Invoke) -> None:
    assert invoke("share", ",").code == 2


def test_a_model_that_is_named_twice_is_wrong_usage(invoke: Invoke, two: tuple[Path, Path]) -> None:
    """It is not told that its own context model exists already."""
    result = invoke("share", two[0], two[1], two[0])
    assert result.code == 2
    assert f"{two[0]} is named twice" in result.err
    assert not list(two[0].parent.glob("*_ctx*"))


def test_one_model_that_fails_leaves_no_file(invoke: Invoke, two: tuple[Path, Path]) -> None:
    two[1].write_bytes(b"no model")
    assert invoke("share", "-e", "openvino", *two).code != 0
    assert names(two[0].parent) == ["a.onnx", "b.onnx"]


def test_a_model_that_nothing_compiles_leaves_no_file(
    invoke: Invoke, two: tuple[Path, Path]
) -> None:
    done = invoke("share", "-e", "cpu", *two)
    assert done.code == 5
    assert "nothing was written" in done.err
    assert names(two[0].parent) == ["a.onnx", "b.onnx"]


def test_force_replaces_the_groups_files_and_leaves_no_others(
    invoke: Invoke, two: tuple[Path, Path]
) -> None:
    assert invoke("share", "-e", "openvino", *two).code == 0
    refused = invoke("share", "-e", "openvino", *two)
    assert refused.code == 5
    assert "exists already" in refused.err
    assert "--force" in refused.err
    again = invoke("share", "-e", "openvino", "--force", *two, "--json")
    assert again.code == 0
    assert names(two[0].parent) == sorted(
        {"a.onnx", "b.onnx", *(file["path"].rpartition(os.sep)[2] for file in again.json["files"])}
    )
    check(two)


def test_force_keeps_a_payload_file_that_another_model_uses(
    invoke: Invoke, two: tuple[Path, Path]
) -> None:
    assert invoke("share", "-e", "openvino", *two).code == 0
    assert invoke("share", "-e", "openvino", "--force", two[0]).code == 0
    assert BIN in names(two[0].parent)
    check(two)


def test_force_replaces_a_damaged_context_model(invoke: Invoke, two: tuple[Path, Path]) -> None:
    for path in two:
        path.with_name(f"{path.stem}_ctx.onnx").write_bytes(b"damaged")
    assert invoke("share", "-e", "openvino", "--force", *two).code == 0
    assert names(two[0].parent) == FILES
    check(two)


def test_force_keeps_the_old_files_when_a_model_fails(
    invoke: Invoke, two: tuple[Path, Path]
) -> None:
    assert invoke("share", "-e", "openvino", *two).code == 0
    old = {name: (two[0].parent / name).read_bytes() for name in FILES}
    two[1].write_bytes(b"not a model")
    assert invoke("share", "-e", "openvino", "--force", *two).code != 0
    two[1].write_bytes(old["b.onnx"])
    assert names(two[0].parent) == FILES
    assert all((two[0].parent / name).read_bytes() == old[name] for name in FILES)
