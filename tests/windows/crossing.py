"""Contexts that are made on one system and loaded on the other.

`python crossing.py make FOLDER` compiles small models on OpenVINO and keeps the answers;
`python crossing.py load FOLDER` loads what was made, and compares bit for bit.
check_windows.py runs one half under Wine and the other half here, both ways round.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from small_models import feed, mlp, sandwich  # noqa: E402 - the path comes first

import ort_lite as ort  # noqa: E402 - as above

OPENVINO = "OpenVINOExecutionProvider"
MODELS = {"mlp": mlp, "sandwich": sandwich}


def make(folder: Path) -> int:
    """Write a context model of each kind, and what it answers here."""
    for name, model in MODELS.items():
        for embed in "01":
            place = folder / f"{name}{embed}"
            place.mkdir(parents=True, exist_ok=True)
            (place / "m.onnx").write_bytes(model().SerializeToString())
            options = ort.SessionOptions()
            options.add_session_config_entry("ep.context_enable", "1")
            options.add_session_config_entry("ep.context_embed_mode", embed)
            with ort.InferenceSession(place / "m.onnx", options, providers=[OPENVINO]) as session:
                np.savez(place / "answer.npz", *session.run(None, feed(model())))
            (place / "m.onnx").unlink()
    return 0


def load(folder: Path) -> int:
    """Load each context model, and compare its answer; how many differ or are refused."""
    wrong = 0
    for name, model in MODELS.items():
        for embed in "01":
            place = folder / f"{name}{embed}"
            problem = _problem(place, feed(model()))
            wrong += bool(problem)
            print(f"{place.name}: {problem or 'loads, and answers the same bits'}")
    return int(wrong > 0)


def _problem(place: Path, values: dict[str, np.ndarray]) -> str:
    path = place / "m_ctx.onnx"
    try:
        with ort.InferenceSession(path, providers=[OPENVINO]) as session:
            found = session.run(None, values)
    except ort.OrtLiteError as exc:
        return f"is refused: {exc}"
    with np.load(place / "answer.npz") as kept:
        expected = [kept[name] for name in kept.files]
    same = [a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True)]
    return "" if all(same) else "answers other bits"


if __name__ == "__main__":
    sys.exit({"make": make, "load": load}[sys.argv[1]](Path(sys.argv[2])))
