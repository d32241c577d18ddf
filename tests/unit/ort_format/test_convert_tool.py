"""`python -m ort_lite.tools.convert_onnx_models_to_ort` against onnxruntime's tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnxruntime.tools.ort_format_model import create_config_from_models
from ort_models import mixed, run_in_onnxruntime, save_by_onnxruntime
from small_models import branching, mlp

from ctx_formats.ort_model_reader import read_ort_model
from ort_lite.status import InvalidProtobuf
from ort_lite.tools.convert_onnx_models_to_ort import main
from ort_lite.tools.required_operators import config_text

TYPES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x, int64[2] i, uint8[4] u, double[4] d, bool[4] b) =>
  (float[2] gathered, double[4] cast, float[4] chosen, float[4] sliced, float[4, 3] hot,
   float[4] real, float[4] power)
<int64 depth = {3}, float[2] values = {0, 1}, int64[1] zero = {0}, int64[1] four = {4},
 float scale = {0.5}, uint8 point = {1}, int32 two = {2}, int64[4] places = {0, 1, 2, 0}>
{
  gathered = Gather (x, i)
  c = Cast <to = 11> (x)
  cast = Add (c, d)
  chosen = Where (b, x, x)
  sliced = Slice (x, zero, four)
  hot = OneHot (places, depth, values)
  real = DequantizeLinear (u, scale, point)
  power = Pow (x, two)
}
"""


# onnxruntime's tool leaves the files that it reads to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("with_types", [False, True])
def test_the_configuration_is_that_of_onnxruntime_byte_for_byte(
    *, with_types: bool, tmp_path: Path
) -> None:
    protos = [mlp(), branching(), mixed()[0], onnx.parser.parse_model(TYPES)]
    paths = []
    for index, proto in enumerate(protos):
        paths.append(tmp_path / f"m{index}.ort")
        paths[-1].write_bytes(save_by_onnxruntime(proto))
    config = tmp_path / "theirs.config"
    create_config_from_models(paths, config, with_types)
    assert config_text(paths, with_types=with_types) == config.read_text()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (
            ["--optimization_style", "Fixed"],
            {"m.ort", "m.required_operators.config"},
        ),
        (
            ["--enable_type_reduction"],
            {
                *("m.ort", "m.with_runtime_opt.ort", "m.required_operators_and_types.config"),
                "m.required_operators_and_types.with_runtime_opt.config",
            },
        ),
    ],
)
def test_files_have_the_names_of_onnxruntimes_tool(
    arguments: list[str], names: set[str], tmp_path: Path
) -> None:
    """Their tool and ours in processes, since both write to stdout."""
    proto, fed = mixed()
    for package in ("onnxruntime", "ort_lite"):
        folder = tmp_path / package
        folder.mkdir()
        (folder / "m.onnx").write_bytes(proto.SerializeToString())
        tool = f"{package}.tools.convert_onnx_models_to_ort"
        command = [sys.executable, "-m", tool, str(folder / "m.onnx"), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[3])
        assert {p.name for p in folder.iterdir()} == names | {"m.onnx"}
    mine, theirs = (
        run_in_onnxruntime((tmp_path / package / "m.ort").read_bytes(), fed)
        for package in ("ort_lite", "onnxruntime")
    )
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_folder_is_converted_with_its_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORT_CONVERT_ONNX_MODELS_TO_ORT_OPTIMIZATION_LEVEL", "basic")
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/a.onnx").write_bytes(mlp().SerializeToString())
    (tmp_path / "in/deep/b.ONNX").write_bytes(mlp().SerializeToString())
    (tmp_path / "in/c.optimized.onnx").write_bytes(b"from an earlier run")
    main(
        [
            *("--output_dir", str(tmp_path / "out"), "--optimization_style", "Fixed"),
            *("--save_optimized_onnx_model", str(tmp_path / "in")),
        ]
    )
    files = {p.relative_to(tmp_path / "out").as_posix() for p in tmp_path.glob("out/**/*.*")}
    assert files == {
        *("a.basic.ort", "a.basic.optimized.onnx", "required_operators.basic.config"),
        *("deep/b.basic.ort", "deep/b.basic.optimized.onnx"),
    }
    assert "Converted 2/2 models successfully." in capsys.readouterr().out
    data = memoryview((tmp_path / "out/a.basic.ort").read_bytes())
    assert read_ort_model(data).version == 6


def test_a_model_that_cannot_be_converted_stops_the_tool_unless_it_may_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    (tmp_path / "good.onnx").write_bytes(mlp().SerializeToString())
    with pytest.raises(InvalidProtobuf, match="protobuf parsing failed"):
        main([str(tmp_path)])
    main([str(tmp_path), "--allow_conversion_failures", "--optimization_style", "Fixed"])
    assert "Converted 1/2 models successfully." in capsys.readouterr().out


def test_what_is_not_there_is_an_error_with_onnxruntimes_words(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a file or directory"):
        main([str(tmp_path / "missing.onnx")])
    with pytest.raises(ValueError, match="No model files were found in"):
        main([str(tmp_path)])
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    with pytest.raises(FileNotFoundError, match="Unable to find custom operator library"):
        main(["--custom_op_library", str(tmp_path / "x.so"), str(tmp_path / "m.onnx")])
    with pytest.raises(RuntimeError, match="does not appear to be a valid ORT format model"):
        config_text([tmp_path / "m.onnx"], with_types=False)
