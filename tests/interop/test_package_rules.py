"""onnxruntime's C API and ctx_formats accept the same model packages, and refuse the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from interop.package_peer import ask
from package_files import CPU, ort_of, variant_of, write_plain
from system_limits import needs_posix

from ctx_formats.directory_digest import digest_folder
from ctx_formats.errors import FormatError
from ctx_formats.package_reader import read_package

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Path], object]

pytestmark = needs_posix  # the wheel for Linux brings the C API as a library
ORT_KEY = "session.model_external_initializers_file_folder_path"


def manifest(**fields: object) -> Make:
    return lambda root: write_plain(root, **fields)


def without(key: str) -> Make:
    return lambda root: write_plain(root, lambda content: content.pop(key))


def variant(**fields: object) -> Make:
    return lambda root: write_plain(root, lambda content: variant_of(content).update(fields))


def ort(**fields: object) -> Make:
    return lambda root: write_plain(root, lambda content: ort_of(content).update(fields))


def components(value: object) -> Make:
    return lambda root: write_plain(root, components=value)


def text(content: str | bytes) -> Make:
    def make(root: Path) -> None:
        write_plain(root)
        data = content if isinstance(content, bytes) else content.encode()
        (root / "manifest.json").write_bytes(data)

    return make


def with_bom(root: Path) -> None:
    write_plain(root)
    path = root / "manifest.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def external(name: str) -> Make:
    """The component in a file of its own, which the manifest names."""

    def make(root: Path) -> None:
        write_plain(root)
        content = json.loads((root / "manifest.json").read_text())
        folder = root / "part"
        folder.mkdir()
        body = content["components"]["model"]
        (
            folder / Path(name).name if name.endswith(".json") else folder / "component.json"
        ).write_text(json.dumps(body))
        (root / "cpu").rename(folder / "cpu")
        content["components"]["model"] = name
        (root / "manifest.json").write_text(json.dumps(content))

    return make


def info_file(content: str, *, name: str = "info.json") -> Make:
    def make(root: Path) -> None:
        write_plain(root, lambda m: variant_of(m).update(executor_info={"ort": name}))
        (root / "cpu" / "info.json").write_text(content)

    return make


def asset(reference: str) -> Make:
    """The model in a shared folder; {uri} and {root} in `reference` are replaced."""

    def make(root: Path) -> None:
        write_plain(root)
        (root / "shared_assets").mkdir()
        uri = digest_folder(root / "cpu")
        (root / "cpu").rename(root / "shared_assets" / uri.replace(":", "-"))
        (root / "cpu").mkdir()
        content = json.loads((root / "manifest.json").read_text())
        ort_of(content)["model_file"] = reference.format(uri=uri, root=root)
        (root / "manifest.json").write_text(json.dumps(content))

    return make


def link(target: str) -> Make:
    def make(root: Path) -> None:
        write_plain(root, lambda m: variant_of(m).update(variant_directory="linked"))
        (root.parent / "outside").mkdir(exist_ok=True)
        (root / "linked").symlink_to(target.format(root=root))

    return make


BODY = {"ep": CPU, "executor_info": {"ort": {"model_file": "model.onnx"}}}
ACCEPTED: dict[str, Make] = {
    "plain": manifest(),
    "integer_version": manifest(schema_version=1),
    "version_short": manifest(schema_version="1"),
    "newer_minor": manifest(schema_version="1.9", later={"x": 1}),
    "newer_minor_variant": lambda root: write_plain(
        root, lambda m: variant_of(m).update(later=1), schema_version="1.2"
    ),
    "all_fields": manifest(
        package_version="2", description="d", layout="portable", additional_metadata={"a": [1.5]}
    ),
    "bom": with_bom,
    "no_component": components({}),
    "no_variant": components({"model": {"variants": {}}}),
    "component_folder": external("part"),
    "component_file": external("part/other.json"),
    "component_name": components({"model": {"component_name": "x", "variants": {"cpu": BODY}}}),
    "info_file": info_file('{"model_file": "model.onnx", "unknown": 1}'),
    "info_unknown": ort(unknown={"x": 1}),
    "other_namespace": variant(executor_info={"other": {"x": [1]}}),
    "metadata": variant(additional_metadata=[1, None, "x"]),
    "device_unknown": variant(device="fpga"),
    "compatibility": variant(compatibility_string="x"),
    "directory": variant(variant_directory="cpu"),
    "directory_slash": variant(variant_directory="./cpu/"),
    "no_default_folder": components({"model": {"variants": {"other": {"ep": CPU}}}}),
    "no_ort": components({"model": {"variants": {"cpu": {"ep": CPU}}}}),
    "asset": asset("{uri}/model.onnx"),
    "session_options": ort(session_options={"session.intra_op_num_threads": "1"}),
    "session_folder": ort(session_options={ORT_KEY: "."}),
    "installed_absolute": lambda root: write_plain(
        root,
        lambda m: ort_of(m).update(model_file=str(root / "cpu/model.onnx")),
        layout="installed",
    ),
    "installed_dots": lambda root: write_plain(
        root, lambda m: ort_of(m).update(model_file="../cpu/model.onnx"), layout="installed"
    ),
    "link_inside": link("cpu"),
    "model_missing": ort(model_file="absent.onnx"),
}
REFUSED: dict[str, Make] = {
    "major": manifest(schema_version="2.0"),
    "version_word": manifest(schema_version="1.x"),
    "version_float": manifest(schema_version=1.0),
    "version_missing": without("schema_version"),
    "unknown_field": manifest(zzz=1),
    "unknown_variant_field": variant(zzz=1),
    "unknown_component_field": components({"model": {"variants": {}, "zzz": 1}}),
    "components_missing": without("components"),
    "components_array": components([]),
    "component_number": components({"model": 1}),
    "variants_missing": components({"model": {}}),
    "variants_array": components({"model": {"variants": []}}),
    "variant_text": components({"model": {"variants": {"cpu": "cpu"}}}),
    "bad_json": text("{"),
    "empty": text(""),
    "array": text("[]"),
    "not_utf8": text(b'{"schema_version": "1.0", "components": {"\xff": {"variants": {}}}}'),
    "layout": manifest(layout="other"),
    "layout_number": manifest(layout=1),
    "name_number": manifest(package_name=1),
    "ep_number": variant(ep=1),
    "directory_number": variant(variant_directory=1),
    "directory_missing": variant(variant_directory="absent"),
    "directory_dots": variant(variant_directory="../outside"),
    "directory_absolute": variant(variant_directory="/tmp"),
    "directory_drive": variant(variant_directory="C:cpu"),
    "link_outside": link("{root}/../outside"),
    "link_loop": link("linked"),
    "model_dots": ort(model_file="../cpu/model.onnx"),
    "model_absolute": ort(model_file="/tmp/model.onnx"),
    "model_number": ort(model_file=1),
    "asset_key": manifest(shared_assets={"x": "cpu"}),
    "asset_unknown": ort(model_file=f"sha256:{'0' * 64}/model.onnx"),
    "asset_dots": asset("{uri}/../model.onnx"),
    "asset_absolute": asset("{uri}//tmp/x"),
    "asset_override_dots": manifest(shared_assets={f"sha256:{'0' * 64}": "../x"}),
    "info_number": variant(executor_info={"ort": 1}),
    "info_array": variant(executor_info=[]),
    "info_absent": info_file("{}", name="absent.json"),
    "info_bad": info_file("{"),
    "info_is_array": info_file("[]"),
    "info_dots": info_file("{}", name="../cpu/info.json"),
    "option_number": ort(session_options={"a": 1}),
    "options_array": ort(session_options=[]),
    "provider_option_number": ort(provider_options={"a": 1}),
    "option_writes": ort(session_options={"session.enable_profiling": "x"}),
    "option_writes_model": ort(session_options={"session.optimized_model_filepath": "x"}),
    "option_path": ort(session_options={ORT_KEY: "../x"}),
    "component_absent": components({"model": "absent"}),
    "component_dots": components({"model": "../part"}),
}
STRICTER: dict[str, Make] = {
    "duplicate": text(
        '{"schema_version": "1.0", "components": {}, "layout": "x", "layout": "portable"}'
    ),
    "directory_file": variant(variant_directory="cpu/model.onnx"),
    "colon": lambda root: (
        write_plain(root, lambda m: variant_of(m).update(variant_directory="cpu:x")),
        (root / "cpu:x").mkdir(),
    ),
    "device_name": lambda root: (
        write_plain(root, lambda m: variant_of(m).update(variant_directory="nul")),
        (root / "nul").mkdir(),
    ),
}
"""Accepted by onnxruntime and refused by ort_lite, as docs/formats/model_package.md says."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """By name of a case its package, and onnxruntime's error or ""."""
    folder = tmp_path_factory.mktemp("packages")
    roots: dict[str, Path] = {}
    for name, make in (ACCEPTED | REFUSED | STRICTER).items():
        roots[name] = folder / name / "pkg"
        make(roots[name])
    answers = ask(folder, list(roots.values()))
    return {
        name: (root, answer.error)
        for (name, root), answer in zip(roots.items(), answers, strict=True)
    }


@pytest.mark.parametrize("name", ACCEPTED)
def test_both_open_it(name: str, opened: dict[str, tuple[Path, str]]) -> None:
    root, error = opened[name]
    assert error == ""
    assert read_package(root).root == os.path.realpath(root)


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse_it(name: str, opened: dict[str, tuple[Path, str]]) -> None:
    root, error = opened[name]
    assert error != ""
    with pytest.raises(FormatError) as refused:
        read_package(root)
    assert refused.value.expected


@pytest.mark.parametrize("name", STRICTER)
def test_ort_lite_refuses_more(name: str, opened: dict[str, tuple[Path, str]]) -> None:
    root, error = opened[name]
    assert error == ""
    with pytest.raises(FormatError):
        read_package(root)


def test_no_folder_and_no_manifest_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    paths = [tmp_path / name for name in ("absent", "file", "empty")]
    for path, answer in zip(paths, ask(tmp_path, paths), strict=True):
        assert answer.error
        with pytest.raises(FormatError):
            read_package(path)


def test_paths_resolve_to_the_same_files(tmp_path: Path) -> None:
    root = tmp_path / "pkg"
    asset("{uri}/model.onnx")(root)
    (uri,) = (p.name.replace("-", ":") for p in (root / "shared_assets").iterdir())
    references = (uri, f"{uri}/model.onnx", "cpu", "manifest.json")
    (answer,) = ask(tmp_path, [root], resolve=references)
    package = read_package(root)
    for reference in references:
        mine = package.paths.resolve(reference, package.root, "reference")
        assert os.path.realpath(answer.resolved[reference]) == mine


def test_components_and_variants_are_read_alike(tmp_path: Path) -> None:
    order: dict[str, Any] = {name: {"ep": name.upper()} for name in ("z", "m", "a")}
    root = write_plain(
        tmp_path / "pkg", components={"b": {"variants": order}, "a": {"variants": {}}}
    )
    (answer,) = ask(tmp_path, [root])
    mine = read_package(root).manifest
    assert {
        c.name: {v.name: v.ep for v in c.variants} for c in mine.components
    } == answer.components
    assert answer.schema == 1
    assert [v.name for v in mine.components[0].variants] == list(answer.components["b"])
