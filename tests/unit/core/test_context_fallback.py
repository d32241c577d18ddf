"""Contexts that a new driver or SDK refuses: the plain model is compiled, the context stays."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from small_models import feed, mlp

import ort_lite as ort
from eps.opencl.runtime.identity import read_identity

if TYPE_CHECKING:
    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.runtime.device import ListedDevice

OPENCL = "OpenCLExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"
FALLBACK = "session__ep_context_fallback"
GOLDEN = Path(__file__).parents[2] / "golden"


def options(cache: Path, **entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_session_config_entry("session.ep_context_cache_dir", str(cache))
    made.add_session_config_entry("session.placement", "all")
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    return made


def compile_context(model: Path, providers: object = (OPENCL,), **dimensions: int) -> Path:
    chosen = ort.SessionOptions()
    chosen.add_session_config_entry("ep.context_enable", "1")
    for name, size in dimensions.items():
        chosen.add_free_dimension_override_by_name(name, size)
    ort.InferenceSession(model, chosen, providers=providers).close()  # type: ignore[arg-type]  # a tuple, too
    return model.with_name(f"{model.stem}_ctx.onnx")


@pytest.fixture
def context(tmp_path: Path) -> Path:
    model = tmp_path / "ship" / "m.onnx"
    model.parent.mkdir()
    onnx.save(mlp(), model)
    return compile_context(model)


@pytest.fixture
def update_driver(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The OpenCL execution provider reports another driver once the fixture is called."""

    def read_updated(device: ListedDevice) -> HardwareIdentity:
        return replace(read_identity(device), driver_version="updated")

    monkeypatch.setattr("eps.opencl.provider.read_identity", read_updated)
    return monkeypatch


def expected() -> list[np.ndarray]:
    with ort.InferenceSession(mlp().SerializeToString(), providers=[CPU]) as session:
        return session.run(None, feed(mlp()))


def check(session: ort.InferenceSession) -> None:
    for value, right in zip(session.run(None, feed(mlp())), expected(), strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-4, atol=1e-5)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_after_a_driver_update_the_plain_model_is_compiled_and_kept(
    context: Path, tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    before = contents(context.parent)
    for state, does in (("stored", "is compiled here"), ("hit", "loaded from the model cache")):
        with ort.InferenceSession(
            context, options(tmp_path / "cache", **{FALLBACK: "compile"}), providers=[OPENCL]
        ) as session:
            check(session)
            assert session.get_providers()[0] == OPENCL
            assert session.load_report().cache.state == state
            (note,) = session.explain().notes
        assert "does not fit this machine (driver_version) and stays as it is" in note
        assert does in note
    assert contents(context.parent) == before


def test_the_context_serves_again_once_the_old_driver_is_back(
    context: Path, tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    chosen = options(tmp_path / "cache", **{FALLBACK: "compile"})
    ort.InferenceSession(context, chosen, providers=[OPENCL]).close()
    update_driver.undo()
    with ort.InferenceSession(context, chosen, providers=[OPENCL]) as session:
        check(session)
        assert session.load_report().cache.state == "off"
        assert session.explain().partitions[0].origin == "context"


def test_the_plain_model_is_compiled_in_the_background(
    context: Path, tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    with ort.InferenceSession(
        context, options(tmp_path / "cache", **{FALLBACK: "background"}), providers=[OPENCL]
    ) as session:
        check(session)
        assert session.background_compile(None).state == "done"
        assert session.get_providers()[0] == OPENCL
        check(session)
        assert session.load_report().cache.state == "stored"
        assert "is compiled in the background" in session.explain().notes[0]


def test_the_plain_model_runs_on_the_cpu_ep(
    context: Path, tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    with ort.InferenceSession(
        context, options(tmp_path / "cache", **{FALLBACK: "cpu"}), providers=[OPENCL]
    ) as session:
        check(session)
        assert session.get_providers() == [CPU]
    assert not (tmp_path / "cache").exists()


def test_without_the_option_the_refusal_is_an_error(
    context: Path, tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    for entries in ({}, {FALLBACK: "refuse"}):
        with pytest.raises(ort.InvalidGraph) as refused:
            ort.InferenceSession(context, options(tmp_path, **entries), providers=[OPENCL])
        assert refused.value.reason == "driver_version"


def test_damage_is_an_error_with_the_option(context: Path, tmp_path: Path) -> None:
    payload = context.with_name(f"m_{OPENCL}.bin")
    data = bytearray(payload.read_bytes())
    data[len(data) // 2] ^= 1
    payload.write_bytes(data)
    with pytest.raises(ort.InvalidGraph) as refused:
        ort.InferenceSession(
            context, options(tmp_path, **{FALLBACK: "compile"}), providers=[OPENCL]
        )
    assert refused.value.reason == "integrity"


def test_another_model_under_the_recorded_name_is_refused(
    context: Path, tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    other = mlp()
    other.graph.name = "another"
    onnx.save(other, context.with_name("m.onnx"))
    with pytest.raises(ort.InvalidGraph, match=r"digest .* of the model compiled") as refused:
        ort.InferenceSession(
            context, options(tmp_path, **{FALLBACK: "compile"}), providers=[OPENCL]
        )
    assert refused.value.reason == "driver_version"


def test_a_missing_model_is_named_and_can_be_named(
    context: Path, tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "plain.onnx"
    shutil.move(context.with_name("m.onnx"), elsewhere)
    chosen = options(tmp_path / "cache", **{FALLBACK: "compile"})
    with pytest.raises(ort.InvalidGraph, match=r"'m\.onnx': not in the context model's folder"):
        ort.InferenceSession(context, chosen, providers=[OPENCL])
    chosen.add_session_config_entry("session.ep_context_source", str(elsewhere))
    with ort.InferenceSession(context, chosen, providers=[OPENCL]) as session:
        check(session)


def test_a_context_from_memory_asks_for_the_path_of_its_model(
    tmp_path: Path, update_driver: pytest.MonkeyPatch
) -> None:
    update_driver.undo()
    model = tmp_path / "m.onnx"
    onnx.save(mlp(), model)
    embedded = ort.SessionOptions()
    embedded.add_provider(OPENCL, {})
    data = ort.ModelCompiler(embedded, model, embed_compiled_data_into_model=True)
    compiled = data.compile_to_bytes()
    update_driver.setattr(
        "eps.opencl.provider.read_identity",
        lambda device: replace(read_identity(device), driver_version="updated"),
    )
    with pytest.raises(ort.InvalidGraph, match=r"it is in memory.*session\.ep_context_source=PATH"):
        ort.InferenceSession(
            compiled, options(tmp_path, **{FALLBACK: "compile"}), providers=[OPENCL]
        )


def test_sizes_that_the_context_fixed_are_fixed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(mlp("rows"), model)
    context = compile_context(model, rows=2)
    monkeypatch.setattr(
        "eps.opencl.provider.read_identity",
        lambda device: replace(read_identity(device), driver_version="updated"),
    )
    with ort.InferenceSession(
        context, options(tmp_path / "cache", **{FALLBACK: "compile"}), providers=[OPENCL]
    ) as session:
        check(session)
        assert session.get_inputs()[0].shape[0] == 2


def test_an_unknown_value_is_refused(context: Path, tmp_path: Path) -> None:
    with pytest.raises(ort.InvalidArgument, match="expected one of refuse, compile"):
        ort.InferenceSession(context, options(tmp_path, **{FALLBACK: "maybe"}))


def test_after_an_sdk_update_the_named_model_is_compiled(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(mlp(), model)
    old = GOLDEN / "openvino_2025.4.1" / "mlp_ctx.onnx"
    chosen = options(tmp_path / "cache", **{FALLBACK: "compile"})
    with pytest.raises(ort.InvalidGraph, match="they do not record a file name"):
        ort.InferenceSession(old, chosen, providers=[OPENVINO])
    chosen.add_session_config_entry("session.ep_context_source", str(model))
    with ort.InferenceSession(old, chosen, providers=[OPENVINO]) as session:
        check(session)
        assert "does not fit this machine (sdk_version)" in session.explain().notes[0]
