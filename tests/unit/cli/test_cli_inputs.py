"""`ort-lite run` takes pictures, .npy, .npz and .json, guesses open sizes, and shows values."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from system_limits import needs_symlinks

from ort_lite.cli.arrays import load_arrays
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.format_outputs import value_lines
from ort_lite.model.info import NodeArg
from ort_lite.model.shape_guess import guessed_shape

if TYPE_CHECKING:
    from PIL import Image
else:
    Image = pytest.importorskip("PIL.Image", reason="Pillow is the extra `image`")


def write_mean_of_image(
    path: Path, shape: list[object], data_type: int = TensorProto.FLOAT, **metadata: str
) -> Path:
    """y = the input itself, as float, so that what a picture became can be read."""
    graph = helper.make_graph(
        [helper.make_node("Cast", ["image"], ["y"], to=TensorProto.FLOAT)],
        "image",
        [helper.make_tensor_value_info("image", data_type, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """4 by 2 pixels: all red but for a blue one."""
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[:, :, 0] = 255
    pixels[0, 0] = (0, 0, 255)
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    return path


def became(invoke, tmp_path: Path, *arguments: object) -> np.ndarray:
    """What the model was given."""
    out = tmp_path / "out.npz"
    result = invoke("run", *arguments, "-e", "cpu", "-o", out)
    assert result.code == 0, result.err
    return load_arrays(out)["y"]


def test_a_picture_is_an_input(invoke, tmp_path: Path, picture: Path) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 3, 2, 4])
    given = became(invoke, tmp_path, picture, "-m", model)
    assert given.shape == (1, 3, 2, 4)
    assert given[0, :, 0, 0].tolist() == [0, 0, 1]
    assert given[0, :, 1, 3].tolist() == [1, 0, 0]
    again = became(invoke, tmp_path, model, f"image={picture}")
    np.testing.assert_array_equal(again, given)


def test_a_picture_s_numbers_are_those_asked_for(invoke, tmp_path: Path, picture: Path) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 2, 4, 3])
    form = ("--scale", "1", "--mean", "1,2,3", "--std", "2", "--bgr")
    given = became(invoke, tmp_path, model, picture, *form)
    assert given[0, 0, 0].tolist() == [(255 - 1) / 2, -1, -1.5]


def test_uint8_takes_the_pixels_as_they_are(invoke, tmp_path: Path, picture: Path) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [3, 2, 4], TensorProto.UINT8)
    assert became(invoke, tmp_path, model, picture)[:, 0, 0].tolist() == [0, 0, 255]


def test_a_picture_gets_the_size_in_the_metadata(invoke, tmp_path: Path, picture: Path) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 1, "h", "w"], imgsz="[6, 5]")
    assert became(invoke, tmp_path, model, picture).shape == (1, 1, 6, 5)


def test_what_was_done_to_a_picture_is_told(invoke, tmp_path: Path, picture: Path) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 3, 8, 8])
    command = ("run", model, picture, "-e", "cpu")
    begin = "note: photo.png: 4x2 resized to 8x8, RGB, "
    assert invoke(*command).err.startswith(f"{begin}value * 0.00392157\n")
    told = invoke(*command, "--mean", "0.5,0.4,0.3", "--std", "0.2").err
    assert told.startswith(f"{begin}(value * 0.00392157 - (0.5, 0.4, 0.3)) / 0.2\n")


@pytest.mark.parametrize(
    ("shape", "data_type", "text"),
    [
        ([1, 10], TensorProto.FLOAT, "an image input has batch size 1 and 1 or 3 channels"),
        ([2, 3, 4, 4], TensorProto.FLOAT, "an image input has batch size 1"),
        ([1, 3, 4, 4], TensorProto.INT64, "an image converts to floats or uint8"),
    ],
)
def test_a_picture_that_fits_no_input_is_refused(
    invoke, tmp_path: Path, picture: Path, shape: list[object], data_type: int, text: str
) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", shape, data_type)
    result = invoke("run", model, picture, "-e", "cpu")
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    assert text in result.err


def test_npy_npz_and_json_give_the_same(invoke, model: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x)
    (tmp_path / "x.json").write_text(json.dumps({"x": x.tolist()}))
    (tmp_path / "bare.json").write_text(json.dumps(x.tolist()))
    (expected,) = ReferenceEvaluator(str(model)).run(None, {"x": x})
    for name in ("x.npy", "x.npz", "x.json", "bare.json"):
        for given in (tmp_path / name, f"x={tmp_path / name}"):
            if given == f"x={tmp_path / 'x.json'}" or given == f"x={tmp_path / 'x.npz'}":
                continue  # they name their arrays themselves
            np.testing.assert_allclose(became(invoke, tmp_path, model, given), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("x.npy", b"text", "is not a .npy file"),
        ("x.json", b"{", "as JSON"),
        ("x.json", b"[[1, 2], [3]]", "the value for input x, a tensor"),
        ("x.json", b'{"z": [1]}', "the model has no input z; it has x"),
        ("x.png", b"text", "an image input has batch size 1"),
        ("x.wav", b"text", "expected .npz, .npy, .json or an image"),
    ],
)
def test_a_bad_input_file_is_named(
    invoke, model: Path, tmp_path: Path, name: str, content: bytes, text: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = invoke("run", model, path, "-e", "cpu")
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    assert text in result.err


def test_a_picture_that_is_none_is_named(invoke, tmp_path: Path) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 3, 8, 8])
    (tmp_path / "x.png").write_bytes(b"text")
    for name, text in (("x.png", "as an image"), ("y.png", "does not exist")):
        result = invoke("run", model, tmp_path / name, "-e", "cpu")
        assert (result.code, result.out) == (ExitCode.USAGE, "")
        assert text in result.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs in folders")
@pytest.mark.parametrize("name", ["x.npz", "x.npy", "x.json", "x.png", "labels.txt"])
def test_a_fifo_is_refused_at_once(invoke, model: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    given = ("--labels", path) if name == "labels.txt" else (path,)
    result = invoke("run", model, *given, "-e", "cpu")
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    assert f"{name} is not a regular file" in result.err


@needs_symlinks
@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="the system has no /dev/zero")
@pytest.mark.parametrize("name", ["x.npz", "x.npy", "x.json", "x.png", "labels.txt", "m.onnx"])
def test_a_device_that_never_ends_is_refused_at_once(
    invoke, model: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")
    given = (model, "--labels", path) if name == "labels.txt" else (model, path)
    result = invoke("run", *((path,) if name == "m.onnx" else given), "-e", "cpu")
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    assert "regular file" in result.err


def test_a_file_too_many_is_refused(invoke, model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 3), np.float32))
    result = invoke("run", model, tmp_path / "x.npy", tmp_path / "x.npy", "-e", "cpu")
    assert result.code == ExitCode.USAGE
    assert "no input is left for it" in result.err


@pytest.mark.parametrize(
    ("shape", "metadata", "expected"),
    [
        (["batch", 3, "height", "width"], {}, (1, 3, 224, 224)),
        ([None, "h", "w", 3], {"imgsz": "[320, 640]"}, (1, 320, 640, 3)),
        ([1, 3, 32, "w"], {"imgsz": "640"}, (1, 3, 32, 640)),
        (["b", 3, "h", "w"], {"imgsz": "[0, -1]"}, (1, 3, 224, 224)),
        ([None, 3, None, "w"], {"character": "abc"}, (1, 3, 48, 320)),
        (["batch", "sequence_length"], {}, (1, 16)),
        ([None, 7, None], {}, (1, 7, 1)),
        ([], {}, ()),
    ],
)
def test_open_sizes_are_guessed(shape, metadata, expected: tuple[int, ...]) -> None:
    assert guessed_shape(NodeArg("x", "tensor(float)", shape), metadata) == expected


def test_inputs_that_share_a_symbol_are_guessed_alike(invoke, tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Add", ["ids", "mask"], ["y"])],
        "sum",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "sequence"])
            for name in ("ids", "mask")
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    result = invoke("run", tmp_path / "m.onnx", "--shape", "ids=2x32", "-e", "cpu")
    assert result.code == 0, result.err
    assert "--shape mask=2x32" in result.err
    assert "y: float32[2, 32]" in result.out


def test_a_guess_is_told_with_what_sets_it(invoke, model: Path) -> None:
    result = invoke("run", model, "-e", "cpu")
    assert result.code == 0
    assert "--shape x=1x3" in result.err
    assert invoke("run", model, "-e", "cpu", "--shape", "x=1x3").err == ""


def test_a_run_that_fails_on_a_guess_says_how_to_give_the_sizes(invoke, tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 7])],
        [helper.make_tensor("shape", TensorProto.INT64, [2], [5, 7])],
    )
    path = tmp_path / "m.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    result = invoke("run", path, "-e", "cpu")
    assert result.code == ExitCode.COMPILE_FAILED
    assert "were guessed" in result.err
    assert invoke("run", path, "-e", "cpu", "--shape", "x=35").code == 0


def test_classes_are_shown_by_name(invoke, tmp_path: Path) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 4], names="{0:'a', 1:'b', 2:'c', 3:'d'}")
    np.save(tmp_path / "x.npy", np.array([[0.1, 0.7, 0.15, 0.05]], np.float32))
    shown = invoke("run", model, tmp_path / "x.npy", "-e", "cpu", "--top", "2").out.splitlines()
    assert [line.split() for line in shown[1:3]] == [["0.7", "1", "b"], ["0.15", "2", "c"]]
    labels = tmp_path / "labels.txt"
    labels.write_text("north\neast\nsouth\nwest\n")
    shown = invoke("run", model, tmp_path / "x.npy", "-e", "cpu", "--labels", labels).out
    assert "east" in shown


@pytest.mark.parametrize("names", ["[", "{0: open}", "(" * 500 + ")" * 500, "{0: 1}"])
def test_metadata_that_holds_no_names_is_passed_over(invoke, tmp_path: Path, names: str) -> None:
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 3], names=names)
    assert invoke("run", model, "-e", "cpu").code == 0


def test_small_outputs_are_printed_and_large_ones_summed_up() -> None:
    assert list(value_lines("y", np.array([[1, 2]], np.int64))) == ["y: int64[1, 2] = [[1, 2]]"]
    wide = np.arange(100, dtype=np.float32)
    wide[3] = np.nan
    (line,) = value_lines("y", wide.reshape(10, 10))
    assert line.startswith("y: float32[10, 10]  min 0, max 99, mean ")
    assert line.endswith(", 1 not finite")


def test_times_and_devices_are_told(invoke, model: Path) -> None:
    shown = invoke("run", model, "-e", "openvino", "--shape", "x=1x3").out
    assert "ran on: OpenVINOExecutionProvider on CPU: " in shown
    assert "(3 nodes)" in shown
    assert "first run" in shown
    found = invoke("run", model, "-e", "openvino", "--json").json
    assert found["devices"]["OpenVINOExecutionProvider"].startswith("CPU: ")
    assert set(found["seconds"]) == {"load", "run"}
