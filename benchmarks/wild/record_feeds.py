"""Runs a program and keeps what its models get: `record_feeds.py FOLDER PROGRAM`.

FOLDER gets, for each model that ran in onnxruntime, `<number>.npz` with the arrays of its first
run and `<number>.json` with the path of the model, and `<number>.onnx` where the program opened
bytes. A feed of anything but arrays of numbers is not kept.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from collections.abc import Mapping


_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}
"""By onnxruntime's name; it converts lists to these itself."""


class Recorder:
    """Keeps the first feed of each model."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[int, str | bytes] = {}
        self._kept: set[str | bytes] = set()

    def note_model(self, session: object, model: str | bytes | Path) -> None:
        """A session was made of `model`."""
        self._opened[id(session)] = (
            model if isinstance(model, bytes) else str(Path(model).resolve())
        )

    def keep_feed(self, session: object, feed: Mapping[str, Any], types: Mapping[str, str]) -> None:
        """A session is about to run `feed`, whose lists get the element types of its inputs."""
        model = self._opened[id(session)]
        arrays = {
            name: value
            if isinstance(value, np.ndarray)
            else np.asarray(value, _DTYPES.get(types.get(name, "")))
            for name, value in feed.items()
        }
        if model in self._kept or any(array.dtype.kind not in "biuf" for array in arrays.values()):
            return
        self._kept.add(model)
        base = self._folder / str(len(self._kept))
        np.savez(base.with_suffix(".npz"), **arrays)  # type: ignore[arg-type] # numpy 2.4's stub takes allow_pickle for all of **kwds
        path = base.with_suffix(".onnx")
        if isinstance(model, bytes):
            path.write_bytes(model)
        named = str(path) if isinstance(model, bytes) else model
        base.with_suffix(".json").write_text(json.dumps({"model": named}), encoding="utf-8")


def main(folder: str, program: str) -> None:
    """Run `program` as `python program` does."""
    recorder = Recorder(Path(folder))
    real = onnxruntime.InferenceSession

    class RecordedSession(real):  # type: ignore[misc, valid-type] # onnxruntime has no types
        """onnxruntime's session, which also tells the recorder."""

        def __init__(self, path_or_bytes: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - onnxruntime's own
            super().__init__(path_or_bytes, *args, **kwargs)
            recorder.note_model(self, path_or_bytes)

        def run(self, output_names: Any, input_feed: Any, run_options: Any = None) -> Any:  # noqa: ANN401 - as above
            types = {info.name: info.type for info in self.get_inputs()}
            recorder.keep_feed(self, input_feed, types)
            return super().run(output_names, input_feed, run_options)

    onnxruntime.InferenceSession = RecordedSession
    sys.argv = [program]
    sys.path[0] = str(Path(program).parent)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
