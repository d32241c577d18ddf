"""Contexts that Intel's NPU compiler makes, where it is installed: on Windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from npu_compiler import PLATFORMS, require_compiler
from small_models import mlp

from ort_lite.cli.app import run_command
from ort_lite.cli.model_facts import read_facts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture
def compiler() -> None:
    require_compiler()


def compile_for(model: Path, platforms: str, *more: str) -> list[Path]:
    arguments = ["compile", str(model), "--force", "--npu-platform", platforms, *more]
    assert run_command(arguments) == 0
    names = platforms.split(",")
    return [model.with_name(f"{model.stem}_npu{name}_ctx.onnx") for name in names]


@pytest.mark.parametrize("embed", ["--embed", "--no-embed"])
def test_every_platform_gets_its_context_the_same_each_time(tmp_path: Path, embed: str) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(mlp().SerializeToString())
    contexts = compile_for(model, ",".join(PLATFORMS), embed)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert compile_for(model, ",".join(PLATFORMS), embed) == contexts
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    for platform, context in zip(PLATFORMS, contexts, strict=True):
        facts = read_facts(context)
        (node,) = facts.contexts
        assert node.identity["architecture"] == platform
        assert f"npu={platform};" in node.identity["requirements"]
        assert node.identity["requirements"] in str(facts.metadata)


def test_free_dimensions_are_fixed_by_name_and_by_reshape_input(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(mlp("rows").SerializeToString())
    (context,) = compile_for(model, "4000", "--dim", "rows=3")
    assert [arg.shape for arg in read_facts(context).inputs] == [[3, 4]]
    compile_for(model, "5010", "-O", "reshape_input=x[3,4]")
