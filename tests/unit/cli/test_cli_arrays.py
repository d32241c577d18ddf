"""Random feeds fit the model; .npz files come and go without Python objects."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from ctx_formats.onnx_model import DataType
from ort_lite.cli.arrays import load_arrays, load_feed, random_feed, save_arrays
from ort_lite.cli.exit_codes import CommandError
from ort_lite.model.info import NodeArg
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.model.type_text import element_text
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path


def has_arrays(data_type: DataType) -> bool:
    try:
        numpy_dtype(data_type)
    except InvalidArgument:
        return False
    return True


TYPES = [data_type for data_type in DataType if has_arrays(data_type)]


def test_the_types_of_the_models_in_the_wild_are_among_those_tried() -> None:
    assert {DataType.FLOAT, DataType.INT64, DataType.BFLOAT16, DataType.INT4} <= set(TYPES)


@pytest.mark.parametrize("data_type", TYPES, ids=lambda t: t.name)
def test_a_random_array_has_the_type_of_its_input(data_type: DataType) -> None:
    arg = NodeArg("x", f"tensor({element_text(data_type)})", [2, "n", None])
    feed = random_feed([arg], {}, seed=0)
    assert (feed["x"].dtype, feed["x"].shape) == (numpy_dtype(data_type), (2, 1, 1))


def test_a_given_shape_wins_over_the_model_s() -> None:
    feed = random_feed([NodeArg("x", "tensor(float)", [1, 2])], {"x": (7,)}, seed=0)
    assert feed["x"].shape == (7,)


def test_an_input_that_is_no_tensor_is_refused() -> None:
    with pytest.raises(CommandError, match=r"input s is a seq\(tensor\(float\)\)"):
        random_feed([NodeArg("s", "seq(tensor(float))")], {}, seed=0)


@pytest.mark.parametrize("name", ["y", "file", "a/b", "naïve"])
def test_an_array_survives_a_file_under_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.npz"
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    save_arrays(path, {name: array})
    found = load_arrays(path)
    assert list(found) == [name]
    np.testing.assert_array_equal(found[name], array)


def test_numpy_reads_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_arrays(path, {"y": np.array([1.5, np.nan])})
    np.testing.assert_array_equal(np.load(path)["y"], [1.5, np.nan])


def test_types_that_numpy_does_not_know_come_back_as_the_model_s(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    array = np.array([1.5, -2.0], dtype=ml_dtypes.bfloat16)
    save_arrays(path, {"x": array})
    feed = load_feed(path, [NodeArg("x", "tensor(bfloat16)", [2])])
    assert feed["x"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(feed["x"], array)


def test_strings_are_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_arrays(path, {"s": np.array(["a", "bcd"], dtype=object)})
    assert load_arrays(path)["s"].tolist() == ["a", "bcd"]


def test_elements_of_a_list_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_arrays(path, {"seq": [np.zeros(1), [np.ones(2)]]})
    assert {name: a.shape for name, a in load_arrays(path).items()} == {
        "seq.0": (1,),
        "seq.1.0": (2,),
    }


def test_a_value_that_is_no_array_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="output m is a dict, not an array"):
        save_arrays(tmp_path / "a.npz", {"m": {}})


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot write .*gone"):
        save_arrays(tmp_path / "gone" / "a.npz", {"y": np.zeros(1)})


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"a\.npz does not exist"):
        load_arrays(tmp_path / "a.npz")


def test_python_objects_in_a_file_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([object()], dtype=object))
    with pytest.raises(CommandError, match=r"not a \.npz file with plain arrays"):
        load_arrays(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and nothing else", bytes(100)])
def test_bytes_that_are_no_archive_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=r"not a \.npz file with plain arrays"):
        load_arrays(path)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(CommandError, match=r"not a \.npz file with plain arrays"):
        load_arrays(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
def test_a_fifo_is_no_file_of_arrays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "feed.npz")
    with pytest.raises(CommandError, match=r"is not a regular file; expected a \.npz file"):
        load_arrays(tmp_path / "feed.npz")


def test_arrays_that_cannot_be_written_leave_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_arrays(path, {"y": np.arange(3)})
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        save_arrays(path, {"x": np.zeros(4), "y": np.array([{}], dtype="O").astype([("a", "O")])})
    np.testing.assert_array_equal(load_arrays(path)["y"], np.arange(3))
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
