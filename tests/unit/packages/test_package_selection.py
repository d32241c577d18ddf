"""Which variant of a package a session loads, and the typed reason against each other one."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from built_packages import CPU, GOLDEN, NPUS, OPENCL, OPENVINO, build_mlp, expected, tree
from package_files import variant_of, write_plain
from small_models import feed, mlp

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ctx_formats.lean_dataclass import replace
from eps.opencl.runtime.identity import read_identity
from ort_lite.packages.variant_notes import read_notes_of
from ort_lite.packages.variant_verdict import FALLBACK_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.runtime.device import ListedDevice
    from ort_lite.packages.variant_verdict import VariantVerdict

FIRST, SECOND = NPUS


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_mlp(tmp_path_factory.mktemp("built"), OPENVINO, OPENCL)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only variants for absent devices, and the source."""
    return build_mlp(tmp_path_factory.mktemp("foreign"))


def options(**entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    return made


def verdicts(selection: ort.PackageSelection) -> Mapping[str, VariantVerdict]:
    return {verdict.variant: verdict for verdict in selection.verdicts}


def check(session: ort.InferenceSession) -> None:
    np.testing.assert_allclose(session.run(None, feed(mlp()))[0], expected()[0], rtol=1e-5)


def update_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the OpenCL execution provider report another driver from now on."""

    def read_updated(device: ListedDevice) -> HardwareIdentity:
        return replace(read_identity(device), driver_version="updated")

    monkeypatch.setattr("eps.opencl.provider.read_identity", read_updated)


def test_the_first_provider_with_a_valid_variant_decides(package: Path) -> None:
    selection = ort.ModelPackage(package).select()
    assert selection.chosen is not None
    assert selection.chosen.variant == "openvino-cpu"
    found = verdicts(selection)
    assert list(found) == [FIRST, SECOND, "openvino-cpu", "opencl-cpu", "source"]
    for name in NPUS:
        assert found[name].reason == "device_missing"
        assert "finds no NPU" in found[name].message
    assert found["opencl-cpu"].is_valid
    assert not found["source"].is_valid
    assert FALLBACK_KEY in found["source"].message


@pytest.mark.parametrize(
    ("provider", "variant"),
    [(OPENVINO, "openvino-cpu"), (OPENCL, "opencl-cpu"), (CPU, "source")],
)
def test_a_named_provider_gets_its_variant(provider: str, variant: str, package: Path) -> None:
    with ort.InferenceSession(package, providers=[provider]) as session:
        check(session)
        assert session.get_providers()[0] == provider
        text = str(session.explain())
    assert f"component model: {variant}" in text
    assert "not openvino-npu-4000: refused (device_missing)" in text


def test_the_order_of_providers_decides(package: Path) -> None:
    selection = ort.ModelPackage(package).select(providers=[OPENCL, OPENVINO])
    assert selection.chosen is not None
    assert selection.chosen.variant == "opencl-cpu"


def test_a_provider_that_the_session_lacks_is_a_reason(package: Path) -> None:
    found = verdicts(ort.ModelPackage(package).select(providers=[OPENCL]))
    assert found["openvino-cpu"].reason == "device_missing"
    assert found["openvino-cpu"].hint == f"add {OPENVINO} to the session's providers"


def test_providers_can_change_later(package: Path) -> None:
    with ort.InferenceSession(package, providers=[OPENVINO]) as session:
        session.set_providers([OPENCL])
        check(session)
        assert session.get_providers()[0] == OPENCL


def test_the_selection_is_json(package: Path) -> None:
    content = ort.ModelPackage(package).select().to_json()
    assert json.loads(json.dumps(content)) == content
    assert content["chosen"] == "openvino-cpu"
    assert content["variants"][0]["reason"] == "device_missing"
    assert content["variants"][2]["verdict"] == "EP_SUPPORTED_OPTIMAL"


def test_an_updated_driver_is_a_reason(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update_driver(monkeypatch)
    selection = ort.ModelPackage(package).select(providers=[OPENCL])
    verdict = verdicts(selection)["opencl-cpu"]
    assert selection.chosen is None
    assert verdict.reason == "driver_version"
    assert "updated" in verdict.message
    assert verdict.hint
    with pytest.raises(ort.NoSuitableVariant, match="driver_version"):
        ort.InferenceSession(package, providers=[OPENCL])


def test_after_a_driver_update_the_source_is_compiled_into_the_cache(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_driver(monkeypatch)
    chosen = options(
        session__package_fallback="compile", session__ep_context_cache_dir=str(tmp_path)
    )
    before = tree(package)
    for state in ("stored", "hit"):
        with ort.InferenceSession(package, chosen, providers=[OPENCL]) as session:
            check(session)
            assert session.get_providers()[0] == OPENCL
            assert session.load_report().cache.state == state
            notes = session.explain().notes
        assert "no variant fits; the source model is compiled here" in notes[0]
    assert tree(package) == before, "a package is only read"


def test_another_sdk_version_is_a_reason(tmp_path: Path) -> None:
    old = GOLDEN / "openvino_2025.4.1" / "mlp_ctx.onnx"
    package = build_mlp(tmp_path, OPENVINO, contexts=[("old", old)])
    found = verdicts(ort.ModelPackage(package).select(providers=[OPENVINO]))
    assert found["old"].reason == "sdk_version"
    assert found["old"].nodes[0].recorded is not None
    assert found["openvino-cpu"].is_valid


def test_without_a_fallback_nothing_runs(foreign: Path) -> None:
    with pytest.raises(ort.NoSuitableVariant) as refused:
        ort.InferenceSession(foreign)
    message = str(refused.value)
    assert "No suitable model variant found for the configured execution providers." in message
    assert "openvino-npu-4000: refused (device_missing)" in message
    assert f"set {FALLBACK_KEY} to compile" in message
    assert refused.value.selection.chosen is None


def test_the_source_is_compiled_in_the_background(foreign: Path, tmp_path: Path) -> None:
    chosen = options(
        session__package_fallback="background", session__ep_context_cache_dir=str(tmp_path)
    )
    with ort.InferenceSession(foreign, chosen, providers=[OPENVINO]) as session:
        check(session)
        assert session.background_compile(None).state == "done"
        check(session)
        assert session.get_providers() == [OPENVINO, CPU]
        assert session.load_report().cache.state == "stored"


def test_the_source_runs_on_the_cpu_ep(foreign: Path) -> None:
    with ort.InferenceSession(foreign, options(session__package_fallback="cpu")) as session:
        check(session)
        assert session.get_providers() == [CPU]


def test_a_fallback_without_a_source_model_is_refused(tmp_path: Path) -> None:
    package = build_mlp(tmp_path, source=False)
    with pytest.raises(ort.NoSuitableVariant, match="build the package for this machine"):
        ort.InferenceSession(package, options(session__package_fallback="compile"))


def test_an_unknown_fallback_is_refused(foreign: Path) -> None:
    with pytest.raises(ort.InvalidArgument, match="expected one of refuse, compile"):
        ort.InferenceSession(foreign, options(session__package_fallback="maybe"))


def test_a_damaged_payload_is_a_reason_and_the_next_variant_runs(
    package: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(package, copy)
    payload = copy / "openvino-cpu" / f"mlp_ctx_{OPENVINO}.bin"
    data = bytearray(payload.read_bytes())
    (entry,) = read_container(memoryview(bytes(data))).entries.values()
    data[entry.offset + entry.size // 2] ^= 1
    payload.write_bytes(data)
    selection = ort.ModelPackage(copy).select()
    assert verdicts(selection)["openvino-cpu"].reason == "integrity"
    assert selection.chosen is not None
    assert selection.chosen.variant == "opencl-cpu"
    payload.unlink()
    missing = verdicts(ort.ModelPackage(copy).select(providers=[OPENVINO]))["openvino-cpu"]
    assert missing.reason == "missing_payload"


def test_a_missing_model_and_odd_notes_are_reasons(tmp_path: Path) -> None:
    def change(manifest: dict[str, object]) -> None:
        body = variant_of(manifest)
        odd = {**body["executor_info"], "ort_lite": {"format": 2}}
        absent = {"ort": {"model_file": "absent.onnx"}}
        manifest["components"] = {
            "model": {
                "variants": {
                    "odd": {**body, "variant_directory": "cpu", "executor_info": odd},
                    "absent": {**body, "variant_directory": "cpu", "executor_info": absent},
                    "none": {**body, "variant_directory": "cpu", "executor_info": {}},
                    "other": {**body, "variant_directory": "cpu", "ep": "QNNExecutionProvider"},
                    "npu": {**body, "variant_directory": "cpu", "device": "npu"},
                }
            }
        }

    root = write_plain(tmp_path / "p", change)
    found = verdicts(ort.ModelPackage(root).select(providers=[CPU]))
    assert {name: str(verdict.reason) for name, verdict in found.items()} == {
        "odd": "format",
        "absent": "missing_payload",
        "none": "format",
        "other": "source_unknown",
        "npu": "device_missing",
    }


@pytest.mark.parametrize(
    "notes",
    [
        {"format": 1, "role": "other"},
        {"format": 1, "role": "source", "files": []},
        {"format": 1, "role": "source", "files": {"a": {"size": -1, "sha256": "0" * 64}}},
        {"format": 1, "role": "source", "files": {"a": {"size": 1, "sha256": "x"}}},
        {"format": 1, "role": "source", "provider_options": {"a": 1}},
        {"format": True, "role": "source"},
    ],
    ids=["role", "files", "size", "digest", "options", "version"],
)
def test_malformed_notes_are_refused(notes: dict[str, object], tmp_path: Path) -> None:
    root = write_plain(
        tmp_path / "p", lambda m: variant_of(m)["executor_info"].update(ort_lite=notes)
    )
    package = ort.ModelPackage(root)
    with pytest.raises(ValueError, match="ort_lite"):
        read_notes_of(package.component.variants[0])
    (verdict,) = package.select(providers=[CPU]).verdicts
    assert verdict.reason == "format"


def test_a_component_must_be_named_where_there_are_several(tmp_path: Path) -> None:
    def double(manifest: dict[str, object]) -> None:
        body = variant_of(manifest) | {"variant_directory": "cpu"}
        manifest["components"] = {n: {"variants": {"cpu": body}} for n in ("first", "second")}

    root = write_plain(tmp_path / "p", double)
    with pytest.raises(ort.InvalidArgument, match="has 2 components; choose one of first, second"):
        ort.InferenceSession(root)
    with pytest.raises(ort.InvalidArgument, match="no component 'third'"):
        ort.ModelPackage(root, component="third")
    with ort.InferenceSession(root, options(session__package_component="second")) as session:
        check(session)
    with ort.InferenceSession(ort.ModelPackage(root, component="first")) as session:
        check(session)


def test_no_package_and_a_hostile_one_are_typed_errors(tmp_path: Path) -> None:
    with pytest.raises(ort.NoSuchFile, match="does not exist"):
        ort.ModelPackage(tmp_path / "absent")
    with pytest.raises(ort.NoSuchFile, match=r"manifest\.json"):
        ort.ModelPackage(tmp_path)
    root = write_plain(tmp_path / "p", lambda m: variant_of(m).update(variant_directory="../x"))
    with pytest.raises(ort.InvalidGraph, match="not a valid model package") as refused:
        ort.InferenceSession(root)
    assert refused.value.reason == "unsafe_path"


def test_variant_entries_yield_to_the_user_s(tmp_path: Path) -> None:
    entries = {"session.package_test": "variant", "session.other_test": "variant"}
    root = write_plain(
        tmp_path / "p",
        lambda m: variant_of(m)["executor_info"]["ort"].update(session_options=entries),
    )
    with ort.InferenceSession(root, options(session__package_test="mine")) as session:
        config = session.get_session_options().config
    assert config["session.package_test"] == "mine"
    assert config["session.other_test"] == "variant"
