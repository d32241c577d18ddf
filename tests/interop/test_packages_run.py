"""onnxruntime selects and runs the variants of packages that ort_lite writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from built_packages import NPUS, OPENVINO, build_mlp, expected
from interop.package_peer import ask
from package_files import variant_of, write_plain
from small_models import feed, mlp
from system_limits import needs_posix

import ort_lite as ort
from ort_lite.packaging.change_package import sign_package
from ort_lite.trust.private_keys import generate_key, read_signer

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = needs_posix  # the wheel for Linux brings the C API as a library
FIRST, SECOND = NPUS


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_mlp(tmp_path_factory.mktemp("built"), OPENVINO)


def test_the_cpu_ep_runs_the_source_model(package: Path, tmp_path: Path) -> None:
    (answer,) = ask(tmp_path, [package], select="model", feed=feed(mlp()))
    assert answer.error == ""
    assert answer.variant == "source"
    assert list(answer.components["model"]) == [FIRST, SECOND, "openvino-cpu", "source"]
    np.testing.assert_allclose(answer.results[0], expected()[0], rtol=1e-5)


def test_the_openvino_plugin_runs_the_variant_for_this_cpu(
    package: Path, plugin_packages: str, tmp_path: Path
) -> None:
    (answer,) = ask(tmp_path, [package], select="model", feed=feed(mlp()), plugin=plugin_packages)
    assert answer.error == ""
    assert answer.variant == "openvino-cpu"
    assert answer.folder == str(package / "openvino-cpu")
    np.testing.assert_allclose(answer.results[0], expected()[0], rtol=1e-5)


def test_a_signed_package_runs_in_onnxruntime(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="needs the package cryptography")
    key = generate_key(tmp_path / "k", None, force=False)
    sign_package(package, tmp_path / "signed", read_signer(key.private, None))
    (answer,) = ask(tmp_path, [tmp_path / "signed"], select="model", feed=feed(mlp()))
    assert answer.error == ""
    np.testing.assert_allclose(answer.results[0], expected()[0], rtol=1e-5)


def test_ort_lite_runs_a_package_of_another_producer(tmp_path: Path) -> None:
    """Nothing of ort_lite is in it; the CPU EP's variant runs as in onnxruntime."""
    root = write_plain(tmp_path / "p")
    with ort.InferenceSession(root) as session:
        assert session.get_providers() == ["CPUExecutionProvider"]
        (result,) = session.run(None, feed(mlp()))
    np.testing.assert_allclose(result, expected()[0], rtol=1e-5)


def test_both_take_the_first_of_equals(tmp_path: Path) -> None:
    def repeat(manifest: dict[str, object]) -> None:
        body = variant_of(manifest) | {"variant_directory": "cpu"}
        manifest["components"] = {"model": {"variants": dict.fromkeys(("z", "m", "a"), body)}}

    root = write_plain(tmp_path / "p", repeat)
    (answer,) = ask(tmp_path, [root], select="model")
    chosen = ort.ModelPackage(root).select().chosen
    assert chosen is not None
    assert chosen.variant == answer.variant == "z"


def test_none_fits_says_what_onnxruntime_says(tmp_path: Path) -> None:
    root = write_plain(tmp_path / "p", lambda m: variant_of(m).pop("ep"))
    (answer,) = ask(tmp_path, [root], select="model")
    with pytest.raises(ort.NoSuitableVariant) as refused:
        ort.InferenceSession(root)
    text = "No suitable model variant found for the configured execution providers."
    assert text in answer.error
    assert text in str(refused.value)
    assert refused.value.selection.verdicts[0].reason == "source_unknown"


def test_onnxruntime_still_never_matches_cpu_as_a_device(tmp_path: Path) -> None:
    """The trap that our packages avoid: see docs/formats/model_package.md."""
    root = write_plain(tmp_path / "p", lambda m: variant_of(m).update(device="cpu"))
    (answer,) = ask(tmp_path, [root], select="model")
    assert "No suitable model variant" in answer.error
    assert ort.ModelPackage(root).select().chosen is not None
