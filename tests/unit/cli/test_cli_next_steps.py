"""An error names the file, says what it is, and gives the next command; misspellings are named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from unit.cli.conftest import write_dense
from unit.cli.test_cli_inputs import write_mean_of_image

from ort_lite import InferenceSession
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.status import Fail

COMMANDS = ("inspect", "check", "compile", "run", "bench", "explain")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_image_in_a_models_place_is_named_with_the_right_command(
    invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (4, 4)).save("photo.png")
    result = invoke(command, "photo.png")
    assert result.code == ExitCode.INVALID_GRAPH
    assert "photo.png is a PNG image, not an ONNX model." in result.err
    assert "Hint: ort-lite run MODEL photo.png" in result.err


@pytest.mark.parametrize(
    ("content", "kind", "hint"),
    [
        (b"", "an empty file", "export the model again"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "git lfs pull"),
        (b"\x1f\x8b\x08\x00rest", "gzip data", "unpack it first"),
        (b"\x1c\0\0\0TFL3" + b"\0" * 50, "a TensorFlow Lite model", "tf2onnx"),
        (b"PK\x03\x04" + b"\0" * 26 + b"archive/data.pkl", "a PyTorch file", "torch.onnx.export"),
        (b'<?xml version="1.0"?><net name="x"/>', "an OpenVINO model", "use the .onnx file"),
    ],
)
def test_another_kind_of_file_has_its_own_hint(
    invoke, tmp_path: Path, content: bytes, kind: str, hint: str
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    result = invoke("inspect", path)
    assert result.code == ExitCode.INVALID_GRAPH
    assert f"m.onnx is {kind}" in result.err
    assert hint in result.err.partition("Hint: ")[2]


def test_a_model_that_ends_early_is_called_so(invoke, model: Path) -> None:
    model.write_bytes(model.read_bytes()[:-40])
    result = invoke("run", model)
    assert "dense.onnx is cut short or damaged" in result.err
    assert "download the whole file again" in result.err


@pytest.mark.parametrize("command", ["inspect", "run", "check"])
def test_a_payload_in_a_models_place_names_its_model(
    invoke, context: Path, payload: Path, command: str
) -> None:
    result = invoke(command, payload)
    assert result.code == ExitCode.INVALID_GRAPH
    assert "is the compiled payload of a context model, not an ONNX model" in result.err
    assert f"Hint: give the context model: {context}" in result.err
    context.unlink()
    assert "Hint: give the context model, an .onnx file" in invoke(command, payload).err


def test_bytes_of_no_known_kind_have_a_next_step(invoke, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(bytes(range(255, 1, -1)))
    assert (
        "give the path of an ONNX model (.onnx); if it is one"
        in invoke("inspect", tmp_path / "m.onnx").err
    )


def test_a_model_in_an_inputs_place_gets_the_comparison(invoke, model: Path) -> None:
    other = write_dense(model.with_name("other.onnx"))
    result = invoke("run", model, other)
    assert result.code == ExitCode.USAGE
    assert f"--compare cpu --reference {other} compares the outputs" in result.err
    text = model.with_name("x.txt")
    text.write_text("1 2 3")
    assert "numpy.save" in invoke("run", model, text).err


@pytest.mark.parametrize("kind", ["png", "npy", "json"])
def test_an_input_with_another_extension_is_named_with_its_own(
    invoke, model: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(model.parent)
    file = Path("x.onnx")
    if kind == "png":
        Image.new("RGB", (4, 4)).save(file, "png")
    elif kind == "npy":
        with file.open("wb") as out:
            np.save(out, np.zeros(3, np.float32))
    else:
        file.write_text('{"x": [1, 2]}')
    for arguments in (("inspect", file), ("run", model, file)):
        assert f"Hint: rename it to x.{kind}" in invoke(*arguments).err
    Image.new("RGB", (4, 4)).save("photo.png", "jpeg")
    assert "Hint: ort-lite run MODEL photo.png" in invoke("inspect", "photo.png").err


def test_a_misspelled_input_is_suggested(
    invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    np.save("picture.npy", np.zeros((1, 3), np.float32))
    assert "Hint: did you mean picture.npy?" in invoke("run", model, "pictur.npy").err


def test_a_misspelled_model_is_suggested(
    invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    assert (
        "dens.onnx does not exist. Hint: did you mean dense.onnx?" in invoke("run", "dens.onnx").err
    )
    assert "this folder has dense.onnx" in invoke("run", "other_name.onnx").err
    assert "the folder gone does not exist" in invoke("run", "gone/dense.onnx").err
    (model.parent / "empty").mkdir()
    assert "empty has no model; give the path" in invoke("run", "empty/dense.onnx").err


def test_json_keeps_the_sentence_and_the_hint(invoke, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    error = invoke("inspect", tmp_path / "m.onnx", "--json").json["error"]
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["message"].endswith("is an empty file, not an ONNX model")
    assert error["hint"] == "download or export the model again"


def test_inputs_before_the_model_get_the_right_order(invoke) -> None:
    result = invoke("run", "photo.jpg", "model.onnx")
    assert result.code == ExitCode.USAGE
    assert "ort-lite run model.onnx photo.jpg" in result.err


def test_outputs_never_replace_a_model(invoke, model: Path) -> None:
    before = model.read_bytes()
    result = invoke("run", model, "-o", model)
    assert result.code == ExitCode.USAGE
    assert "expected a .npz file" in result.err
    assert model.read_bytes() == before


def test_comparing_a_compiled_model_names_its_plain_model(invoke, context: Path) -> None:
    result = invoke("run", context, "--compare", "cpu")
    assert result.code == ExitCode.NO_HARDWARE
    assert "Hint: --reference dense.onnx" in result.err


def test_compiling_again_names_force_and_check(invoke, context: Path, model: Path) -> None:
    assert "--force replaces it" in invoke("compile", model, "-o", context).err
    again = invoke("compile", context)
    assert again.code == ExitCode.INVALID_GRAPH
    assert "is compiled already" in again.err
    assert f"ort-lite check {context}" in again.err


def test_a_plain_model_that_is_checked_gets_the_compile_command(invoke, model: Path) -> None:
    assert f"ort-lite compile {model}" in invoke("check", model).err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("-e", "openvin"), "did you mean openvino?"),
        (("-e", "openvino", "-O", "devicetype=CPU"), "did you mean device_type?"),
        (("--devise", "cpu"), "--device"),
    ],
)
def test_a_misspelled_option_is_suggested(invoke, model: Path, arguments, meant: str) -> None:
    result = invoke("run", model, *arguments)
    assert result.code == ExitCode.USAGE
    assert meant in result.err


def test_options_that_the_cpu_ignores_are_noted(invoke, model: Path) -> None:
    result = invoke("run", model, "-e", "cpu", "-O", "use_arena=1", "--shape", "x=1x3")
    assert result.code == ExitCode.OK
    assert result.err == (
        "note: -O use_arena has no effect: CPUExecutionProvider has intra_op_num_threads\n"
    )


def test_a_misspelled_variable_is_noted(invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORT_LITE_CACHEDIR", "x")
    note = "note: the variable ORT_LITE_CACHEDIR has no effect; did you mean ORT_LITE_CACHE_DIR?\n"
    assert invoke("doctor").err == note


def test_an_image_is_resized_to_the_shape_that_is_named(invoke, tmp_path: Path) -> None:
    Image.new("RGB", (40, 30)).save(tmp_path / "x.png")
    model = write_mean_of_image(tmp_path / "m.onnx", [1, 3, "h", "w"])
    run = ("run", model, tmp_path / "x.png", "-e", "cpu")
    assert "resized to 20x10" in invoke(*run, "--shape", "image=1x3x10x20").err
    wrong = invoke(*run, "--shape", "image=1x1x10x20")
    assert wrong.code == ExitCode.USAGE
    assert "the model declares 1x3x?x?" in wrong.err
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 2, 2), np.float32))
    array = invoke("run", model, tmp_path / "x.npy", "-e", "cpu", "--shape", "image=1x3x2x2")
    assert array.code == ExitCode.USAGE


def test_a_matrix_is_not_begun_with_what_is_no_model(
    invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (4, 4)).save("photo.png")
    assert invoke("hw", "init", "photo.png").code == ExitCode.INVALID_GRAPH
    assert not Path("hw_matrix.yaml").exists()


def test_an_archive_that_is_none_is_named(invoke, tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "photo.png")
    result = invoke("cache", "import", tmp_path / "photo.png", "--dir", tmp_path / "cache")
    assert result.code == ExitCode.INVALID_GRAPH
    assert "photo.png is a PNG image, not an archive" in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is not there")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_help_that_cannot_be_written_is_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ort_lite", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == ExitCode.USAGE
    assert done.stderr == "error: cannot write the result to stdout: No space left on device\n"


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "inspect"])
def test_missing_weights_are_named_with_where_they_belong(
    invoke, tmp_path: Path, command: str
) -> None:
    path = write_dense_with_data(tmp_path)
    (tmp_path / "m.data").unlink()
    result = invoke(command, path)
    assert result.code == ExitCode.COMPILE_FAILED
    assert f"'m.data' does not exist (looked for {tmp_path / 'm.data'})" in result.err
    assert "Hint: copy or download that file, too, next to the model." in result.err


def write_dense_with_data(folder: Path) -> Path:
    path = write_dense(folder / "m.onnx")
    kept = {"save_as_external_data": True, "location": "m.data", "size_threshold": 0}
    onnx.save_model(onnx.load(path), path, **kept)
    return path


def test_inspect_shows_a_model_without_its_weights_and_says_that_they_are_missing(
    invoke, tmp_path: Path
) -> None:
    path = write_dense_with_data(tmp_path)
    before = invoke("inspect", path, "--json").json
    (tmp_path / "m.data").unlink()
    result = invoke("inspect", path)
    assert result.code == ExitCode.OK
    words = " ".join(result.out.split())
    assert "nodes 3: MatMul x1, Add x1, Relu x1 weights 2, 32 B weight file m.data problem" in words
    assert "'m.data' does not exist" in words
    after = invoke("inspect", path, "--json").json
    (complete,) = before.pop("weight_files")
    (missing,) = after.pop("weight_files")
    assert before == after
    assert (complete["file_bytes"], complete["problem"]) == (32, "")
    assert missing["file_bytes"] is None


@pytest.mark.parametrize("location", ["m.data", "gone.data", "../m.data", "/etc/passwd", "C:x"])
def test_inspect_reports_what_a_session_says_of_a_weight_file(
    invoke, tmp_path: Path, location: str
) -> None:
    path = write_dense_with_data(tmp_path)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        tensor.external_data[0].value = location
    path.write_bytes(model.SerializeToString())
    (tmp_path / "m.data").write_bytes(b"short")
    (file,) = invoke("inspect", path, "--json").json["weight_files"]
    with pytest.raises(Fail) as refused:
        InferenceSession(path)
    assert file["location"] == location
    assert file["problem"] == refused.value.message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seed", "-1"], "--seed.*x>=0"),
        (["--inputs", "none.npy"], "none.npy does not exist; expected a .npz, .npy"),
        (
            ["--labels", "photo.png"],
            "photo.png is a PNG image, not a list of class names",
        ),
        (["--labels", "none.txt"], "none.txt does not exist; expected a text or .json file"),
        (["--shape", "x=0"], r"--shape x: the model declares \?x3"),
    ],
)
def test_options_of_run_say_what_they_expect(
    invoke,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(model.parent)
    Image.new("RGB", (4, 4)).save("photo.png")
    result = invoke("run", model, *arguments)
    assert result.code == ExitCode.USAGE
    assert re.search(words, result.err)


def test_options_of_compile_say_what_they_expect(
    invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    result = invoke("compile", model, "-o", "target")
    assert result.code == ExitCode.USAGE
    assert "-o target: expected the name of a file that ends in .onnx" in result.err
    result = invoke("compile", model, "--passphrase-file", "secret")
    assert result.code == ExitCode.USAGE
    assert "--passphrase-file secret: name the key with --sign" in result.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("photo.png", "photo.png is a PNG image, not a hardware matrix"),
        (".", ". is a folder"),
        ("notes.txt", "notes.txt:1: found text, expected a mapping with the keys schema"),
        ("list.yaml", "list.yaml:1: found a list, expected a mapping with the keys schema"),
    ],
)
def test_another_file_in_a_matrix_s_place_is_named(
    invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (4, 4)).save("photo.png")
    Path("notes.txt").write_text("a text", encoding="utf-8")
    Path("list.yaml").write_text("- a\n", encoding="utf-8")
    result = invoke("hw", "plan", "--file", name)
    assert result.code == ExitCode.USAGE
    assert words in result.err
    assert "ort-lite hw init MODEL" in result.err


def test_a_compiled_model_on_another_provider_names_its_own(invoke, context: Path) -> None:
    result = invoke("run", context, "-e", "cpu")
    assert result.code == ExitCode.NO_HARDWARE
    assert (
        "Hint: the model is compiled for OpenVINOExecutionProvider: use -e openvino" in result.err
    )
    assert invoke("run", context, "-e", "openvino", "--shape", "x=1x3").code == ExitCode.OK


def test_a_reference_without_a_comparison_is_refused(invoke, model: Path) -> None:
    for compare in ((), ("--compare", "expected.npz")):
        result = invoke("run", model, "--reference", model, *compare)
        assert result.code == ExitCode.USAGE
        assert "--reference" in result.err
        assert "--compare onnxruntime or --compare cpu" in result.err


def test_a_key_that_is_absent_is_named_before_the_model_is_compiled(invoke, model: Path) -> None:
    result = invoke("compile", model, "--sign", model.parent / "release.key")
    assert result.code == ExitCode.USAGE
    assert "release.key cannot be read" in result.err
    assert not model.with_name("dense_ctx.onnx").exists()


def test_an_option_without_its_value_names_the_command_for_help(invoke) -> None:
    hint = invoke("cache", "ls", "--dir").err.rstrip()
    assert hint.endswith("Hint: ort-lite cache ls --help"), "no full stop behind a command"
