"""Every file that a release wrote is read as it was meant, or refused with a true reason.

`make_release.py` made the files. What is promised is in docs/compatibility.md.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
from golden.released import RELEASES, Context, Released, context_paths, unpack

import ort_lite as ort
from ctx_formats.errors import FormatError
from ctx_formats.identity import HardwareIdentity
from eps.opencl.compile.tilings import Tile
from eps.opencl.trials.record import read_problem
from eps.opencl.tuning.cache import TuningCache
from eps.opencl.tuning.rows import read_tuned_rows
from ort_lite.hw.cross_result import read_cross
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.report import make_report, read_report
from ort_lite.hw.result import read_results
from ort_lite.model_cache.entry import CacheEntry
from ort_lite.model_cache.store import CacheStore
from ort_lite.model_cache.transfer import import_entries
from ort_lite.model_cache.verification import problems
from ort_lite.probing.probe import _read_verdict
from ort_lite.version import VERSION

if TYPE_CHECKING:
    from pathlib import Path

RTOL, ATOL = 1e-5, 1e-6
"""Sums of at most 64 products of numbers around 1, in float32."""

FIELDS = {
    "sdk_version": ("sdk_version", "sdk_build"),
    "driver_version": ("driver_version",),
    "hardware_architecture": ("architecture", "device", "vendor", "requirements"),
}
"""Reasons for which a machine may refuse a sound context, each with the fields of the identity of
which at least one must differ then."""


@pytest.fixture(params=RELEASES, ids=[release.name for release in RELEASES])
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Released:
    return unpack(request.param, tmp_path / "files")


def test_this_release_has_its_files() -> None:
    assert VERSION in [release.name for release in RELEASES], (
        "python tests/golden/make_release.py makes them"
    )


@pytest.mark.parametrize(
    ("release", "path"), context_paths(), ids=[f"{r.name}-{p}" for r, p in context_paths()]
)
def test_a_context_answers_as_onnxruntime_or_says_what_differs_here(
    release: Path, path: str, tmp_path: Path
) -> None:
    context = unpack(release, tmp_path / "files").context(path)
    try:
        session = ort.InferenceSession(
            context.path, providers=[(context.provider, context.options)]
        )
    except ort.InvalidGraph as exc:
        assert_true_reason(context, exc)
        return
    with session:
        (found,) = session.run(None, context.inputs)
    np.testing.assert_allclose(found, context.output, rtol=RTOL, atol=ATOL)


def assert_true_reason(context: Context, refusal: ort.InvalidGraph) -> None:
    """Fail unless the identity differs in what the reason names, and a remedy is given."""
    (verdict, *_) = ort.check_compatibility(
        context.path, providers=[(context.provider, context.options)]
    )
    assert refusal.reason == verdict.reason
    assert refusal.hint
    assert refusal.recorded is not None
    assert refusal.present is not None
    pairs = [
        (getattr(refusal.recorded, field), getattr(refusal.present, field))
        for field in FIELDS[str(refusal.reason)]
    ]
    assert any(recorded and present and recorded != present for recorded, present in pairs)


def test_the_recorded_answers_are_onnxruntimes(released: Released) -> None:
    for one in released.about["contexts"]:
        context = released.context(one["path"])
        session = onnxruntime.InferenceSession(released.root / one["model"])
        (answer,) = session.run(None, context.inputs)
        np.testing.assert_allclose(answer, context.output, rtol=RTOL, atol=ATOL)


def test_entries_of_the_model_cache_are_whole(released: Released) -> None:
    store = CacheStore(released.root / "cache")
    entries = list(store.entries())
    assert len(entries) == 3
    assert all(isinstance(entry, CacheEntry) for entry in entries)
    assert list(problems(store)) == []
    assert sum(store.is_pinned(key) for key in store.entry_keys()) == 1


@pytest.mark.parametrize(
    ("ep", "options"),
    [
        ("OpenVINOExecutionProvider", {}),
        ("OpenCLExecutionProvider", {"platform": "intel"}),
        ("OpenCLExecutionProvider", {"platform": "portable"}),
    ],
)
def test_a_start_from_the_cache_answers_as_onnxruntime(
    ep: str, options: dict[str, str], released: Released
) -> None:
    """A hit where the identity is this machine's; else it compiles and the entry stays."""
    model = released.root / "models" / "mlp.onnx"
    config = ort.SessionOptions()
    config.add_session_config_entry("session.ep_context_cache", "1")
    config.add_session_config_entry("session.ep_context_cache_dir", str(released.root / "cache"))
    before = CacheStore(released.root / "cache").entry_keys()
    with ort.InferenceSession(model.read_bytes(), config, providers=[(ep, options)]) as session:
        cache = session.load_report().cache
        (found,) = session.run(None, context_of(released, "mlp").inputs)
    assert cache is not None
    assert (cache.state == "hit") == (cache.key in before)
    np.testing.assert_allclose(found, context_of(released, "mlp").output, rtol=RTOL, atol=ATOL)
    assert set(before) <= set(CacheStore(released.root / "cache").entry_keys())


def context_of(released: Released, model: str) -> Context:
    """A context of that plain model, for its inputs and answers."""
    paths = [c["path"] for c in released.about["contexts"] if c["model"] == f"models/{model}.onnx"]
    return released.context(paths[0])


def test_an_archive_seeds_an_empty_cache(released: Released, tmp_path: Path) -> None:
    store = CacheStore(tmp_path / "empty")
    taken = import_entries(store, released.file("archive/seed.tar"), 1 << 30)
    original = CacheStore(released.root / "cache").entry_keys()
    assert sorted(entry.key for entry in taken) == store.entry_keys() == original
    assert list(problems(store)) == []


def test_tuned_tilings_are_read_for_their_device_alone(released: Released) -> None:
    path = released.file("tuning/*.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    ((problem, tiling),) = read_tuned_rows(content["tuned"]).items()
    assert (problem.columns, problem.depth, problem.width, problem.taps) == (8, 64, 64, (1, 1))
    assert isinstance(tiling.tile, Tile)
    assert (tiling.tile.wide, tiling.tile.panels, tiling.tile.vector, tiling.tasks) == (4, 2, 8, 2)
    own = TuningCache(path.parent, HardwareIdentity.from_mapping(content["identity"]))
    assert own.path == path
    assert own.read() == {problem: tiling}
    other = TuningCache(path.parent, HardwareIdentity(device="another"))
    assert other.read() == {}
    shutil.copy(path, other.path)
    with pytest.raises(FormatError, match=r"cache\.identity"):
        other._parse(path.read_bytes())


def test_results_of_trials_are_known(released: Released) -> None:
    records = [
        json.loads(path.read_text(encoding="utf-8"))["device"]
        for path in sorted(released.root.glob("trials/*.json"))
    ]
    found = [read_problem(facts, str(released.root / "trials")) for facts in records]
    assert sorted(map(str, found)) == ["", "refused"]


def test_verdicts_on_payloads_are_known(released: Released) -> None:
    assert _read_verdict(released.file("probes/*.json")) == "was ended by signal 11"


def test_an_adapter_has_its_parameters(released: Released) -> None:
    found = ort.AdapterFormat.read_adapter(str(released.file("adapter/lora.onnx_adapter")))
    assert (found.get_adapter_version(), found.get_model_version()) == (4, 5)
    np.testing.assert_array_equal(
        found.get_parameters()["lora"].numpy(), np.arange(6, dtype=np.float32).reshape(2, 3)
    )
    theirs = onnxruntime.AdapterFormat.read_adapter(str(released.file("adapter/lora.onnx_adapter")))
    np.testing.assert_array_equal(
        theirs.get_parameters()["lora"].numpy(), found.get_parameters()["lora"].numpy()
    )


def test_results_of_the_hardware_matrix_make_a_report(released: Released) -> None:
    folder = released.root / "hw"
    (result,) = read_results([folder])
    assert (result.row, result.status, result.cases[0].metrics) == ("plain", "passed", {"run": 1.5})
    cross = read_cross([folder])
    assert cross is not None
    assert [cell.verdict_text for cell in cross.cells] == ["optimal"]
    assert [one.started for one in read_report(folder).history] == [result.started]
    made = make_report(read_matrix(folder / "hw_matrix.yaml"), [folder], folder)
    assert [one.started for one in made.history] == [result.started]  # the same run, once more
    assert made.changes == ()


def test_a_profile_is_a_trace_as_onnxruntime_writes_it(released: Released) -> None:
    events = json.loads(released.file("profile.json").read_text(encoding="utf-8"))
    kinds = {"cat", "pid", "tid", "dur", "ts", "ph", "name", "args"}
    assert all(kinds <= set(event) for event in events)
    assert {"Session", "Node"} <= {event["cat"] for event in events}


def test_an_optimized_model_is_plain_onnx(released: Released) -> None:
    path = released.root / "models" / "mlp_optimized.onnx"
    context = context_of(released, "mlp")
    for runtime in (onnxruntime, ort):
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, context.inputs)
        np.testing.assert_allclose(found, context.output, rtol=RTOL, atol=ATOL)
