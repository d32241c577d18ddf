"""A signed model and a forged one take turns under one name: the forged one is never what runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from races.meddler import LINK, MODES
from races.racer import answer_of, meddled
from races.versions import ANSWERS, CURRENT, FORMS, make_versions
from signed_models import make_key, options

import ort_lite as ort
from ctx_formats.signatures import read_signed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is in use")
LOADS = 6
RACES = [
    ("CPUExecutionProvider", "plain"),
    ("CPUExecutionProvider", "plain_external"),
    ("OpenVINOExecutionProvider", "external"),
    ("OpenVINOExecutionProvider", "embedded"),
    ("OpenVINOExecutionProvider", "shared"),
]


@pytest.mark.parametrize(("ep", "form"), RACES, ids=[form for _, form in RACES])
def test_a_forged_model_never_runs(tmp_path: Path, ep: str, form: str) -> None:
    if ep not in ort.get_available_providers():
        pytest.skip(f"{ep} has no device here")
    key, folder = make_key(tmp_path, "ship"), tmp_path / "race"
    make_versions(folder, form, ep)
    name = FORMS[form].model
    key.sign(folder / "one" / name)
    signed = (folder / "one" / name).read_bytes()
    size = len(read_signed(memoryview(signed)).content)
    with (folder / "two" / name).open("ab") as forged:
        forged.write(signed[size:])
    (folder / "live" / name).write_bytes(signed)
    assert _loaded(folder / "one" / name, key.public, ep) == ANSWERS["one"]
    assert _loaded(folder / "two" / name, key.public, ep) is None
    for mode in (*MODES, LINK):
        path = folder / (CURRENT if mode == LINK else "live") / name
        with meddled(folder, mode):
            outcomes = [_loaded(path, key.public, ep) for _ in range(LOADS)]
        assert set(outcomes) <= {None, ANSWERS["one"]}, mode


def _loaded(path: Path, trust: Path, ep: str) -> float | None:
    """The number that a session computes; None for a model that is refused."""
    try:
        session = ort.InferenceSession(path, options(trust), providers=[ep])
    except ort.OrtLiteError:
        return None
    with session:
        return answer_of(session)
