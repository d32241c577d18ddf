"""Building, pruning, verifying and signing packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx.parser
import pytest
from built_packages import CPU, NPUS, OPENCL, OPENVINO, build_mlp, expected, npu_contexts, tree
from onnx import helper
from package_files import write_plain
from signed_models import make_key
from small_models import feed, mlp, model

import ort_lite as ort
from ctx_formats.directory_digest import digest_folder
from ctx_formats.package_reader import read_package
from ort_lite.packages.model_package import open_package
from ort_lite.packages.verify_package import find_problems, verify_signature
from ort_lite.packaging.build_package import BuildPlan, BuildTarget, build_package
from ort_lite.packaging.change_package import prune_package, sign_package
from ort_lite.trust.private_keys import read_signer

if TYPE_CHECKING:
    from collections.abc import Callable

TRUST = "session.ep_context_trust"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_mlp(tmp_path_factory.mktemp("built"), OPENVINO)


def quiet(_: str) -> None:
    pass


def test_equal_inputs_make_equal_bytes(tmp_path: Path) -> None:
    """In processes of their own: vendors' compilers number what they compile."""
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    contexts = [f"--context={path}" for _, path in npu_contexts(tmp_path)]
    command = [sys.executable, "-m", "ort_lite", "package", "build", "m.onnx"]
    targets = ["--target=openvino:cpu", "--target=opencl:cpu"]
    environment = {**os.environ, "PYTHONPATH": str(Path(ort.__file__).parents[1])}
    for name in ("a", "b"):
        arguments = [*command, *targets, *contexts, "-o", name]
        subprocess.run(arguments, cwd=tmp_path, capture_output=True, check=True, env=environment)
    assert len(tree(tmp_path / "a")) == 8
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_a_variant_without_a_device_comes_last_of_its_provider(package: Path) -> None:
    (component,) = read_package(package).manifest.components
    assert [(v.name, v.ep, v.device) for v in component.variants] == [
        (NPUS[0], OPENVINO, "npu"),
        (NPUS[1], OPENVINO, "npu"),
        ("openvino-cpu", OPENVINO, ""),
        ("source", CPU, ""),
    ]


def test_the_compatibility_text_is_the_model_s(package: Path) -> None:
    (component,) = read_package(package).manifest.components
    for variant in component.variants[:3]:
        info = ort.get_compatibility_info_from_model(variant.model_path, OPENVINO)
        assert info == variant.compatibility_string is not None


def picking() -> onnx.ModelProto:
    """A MatMul, then columns picked by a node that no accelerator takes, by a constant."""
    random = np.random.default_rng(5)
    weights = {
        "w": random.standard_normal((4, 4)).astype(np.float32),
        "columns": np.array([3, 1, 2], np.int64),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"]),
        helper.make_node("ArrayFeatureExtractor", ["b", "columns"], ["y"], domain="ai.onnx.ml"),
    ]
    made = model(nodes, [("x", [2, 4])], [("y", [2, 3])], weights)
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    return made


def test_weights_that_variants_share_are_written_once(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(picking().SerializeToString())
    contexts = []
    for ep in (OPENVINO, OPENCL):
        folder = tmp_path / ep
        folder.mkdir()
        options = ort.SessionOptions()
        options.add_provider(ep, {})
        options.add_session_config_entry("session.placement", "all")
        # The constants of nodes that stay, the same for both providers, go to a file.
        compiler = ort.ModelCompiler(
            options, path, external_initializers_file_path="rest.bin",
            external_initializers_size_threshold=0,
        )  # fmt: skip
        compiler.compile_to_file(folder / "m_ctx.onnx")
        contexts.append((ep.lower(), folder / "m_ctx.onnx"))
    built = build_package(
        BuildPlan(model=path, contexts=contexts), tmp_path / "p", force=False, progress=quiet
    )
    assert built.shared > 0
    (asset,) = (tmp_path / "p" / "shared_assets").iterdir()
    assert digest_folder(asset) == asset.name.replace("-", ":")
    assert len(list((tmp_path / "p").rglob("rest.bin"))) == 1
    assert find_problems(open_package(str(tmp_path / "p"))) == []
    with ort.InferenceSession(path, providers=[CPU]) as session:
        results = session.run(None, feed(picking()))
    with ort.InferenceSession(tmp_path / "p", providers=[OPENVINO]) as session:
        for mine, theirs in zip(session.run(None, feed(picking())), results, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_equal_variants_share_all_their_files(tmp_path: Path) -> None:
    (_, context), _ = npu_contexts(tmp_path)
    package = build_mlp(tmp_path, contexts=[("first", context), ("second", context)])
    (component,) = read_package(package).manifest.components
    first, second, _ = component.variants
    assert first.model_path == second.model_path
    assert "shared_assets" in first.model_path
    assert len(list(package.rglob("*_ctx.onnx"))) == 1
    assert find_problems(open_package(str(package))) == []


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        (["", ""], "two variants are called 'openvino-npu-4000'"),
        (["a/b"], "it names a folder"),
        (["shared_assets"], "another use"),
    ],
)
def test_names_of_variants_are_checked(contexts: list[str], message: str, tmp_path: Path) -> None:
    (_, context), _ = npu_contexts(tmp_path)
    with pytest.raises(ort.InvalidArgument, match=message):
        build_mlp(tmp_path, contexts=[(name, context) for name in contexts])
    assert not (tmp_path / "pkg").exists()


def test_compiled_and_plain_models_are_not_confused(tmp_path: Path) -> None:
    (_, context), _ = npu_contexts(tmp_path)
    plain = tmp_path / "plain.onnx"
    plain.write_bytes(mlp().SerializeToString())
    with pytest.raises(ort.InvalidArgument, match="has no EPContext node"):
        build_mlp(tmp_path, contexts=[("x", plain)])
    with pytest.raises(ort.InvalidArgument, match="compiled already"):
        build_package(BuildPlan(model=context), tmp_path / "p", force=False, progress=quiet)


def test_only_a_package_is_replaced_and_only_by_force(package: Path, tmp_path: Path) -> None:
    copy = tmp_path / "p"
    shutil.copytree(package, copy)
    model = tmp_path / "m.onnx"
    model.write_bytes(mlp().SerializeToString())
    plan = BuildPlan(model=model)
    with pytest.raises(ort.InvalidArgument, match="--force replaces it"):
        build_package(plan, copy, force=False, progress=quiet)
    assert tree(copy) == tree(package)
    build_package(plan, copy, force=True, progress=quiet)
    assert ort.ModelPackage(copy).variants == ("source",)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").write_text("x")
    with pytest.raises(ort.InvalidArgument, match="is not a model package"):
        build_package(plan, tmp_path / "other", force=True, progress=quiet)
    assert (tmp_path / "other" / "mine").exists()


def test_a_failed_build_leaves_the_old_package(package: Path, tmp_path: Path) -> None:
    copy = tmp_path / "p"
    shutil.copytree(package, copy)
    model = tmp_path / "m.onnx"
    model.write_bytes(mlp().SerializeToString())
    plan = BuildPlan(model=model, targets=[BuildTarget(ep=CPU)])
    with pytest.raises(ort.Fail, match="compiled no node"):
        build_package(plan, copy, force=True, progress=quiet)
    assert tree(copy) == tree(package)


def test_pruning_removes_variants_and_what_only_they_need(tmp_path: Path) -> None:
    (_, context), (_, other) = npu_contexts(tmp_path)
    package = build_mlp(tmp_path, contexts=[("a", context), ("b", context), ("c", other)])
    assert prune_package(package, tmp_path / "most", ["c"]) == ("a", "b", "source")
    assert (tmp_path / "most" / "shared_assets").is_dir()
    assert find_problems(open_package(str(tmp_path / "most"))) == []
    assert prune_package(package, package, ["a", "b"]) == ("c", "source")
    assert set(tree(package)) == {"manifest.json", "c/mlp_npu5010_ctx.onnx", "source/mlp.onnx"}
    with pytest.raises(ort.InvalidArgument, match="no variant 'a'"):
        prune_package(package, package, ["a"])
    with pytest.raises(ort.InvalidArgument, match="nothing would be left"):
        prune_package(package, package, ["c", "source"])


def test_pruning_an_installed_package_is_refused(tmp_path: Path) -> None:
    root = write_plain(tmp_path / "p", layout="installed")
    with pytest.raises(ort.InvalidArgument, match="layout 'installed'"):
        prune_package(root, root, ["cpu"])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda root: (root / "source/mlp.onnx").write_bytes(b"x"), "integrity"),
        (lambda root: (root / "source/mlp.onnx").unlink(), "missing_payload"),
    ],
    ids=["changed", "missing"],
)
def test_verify_finds_damage(
    damage: Callable[[Path], object], reason: str, package: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "p"
    shutil.copytree(package, copy)
    assert find_problems(open_package(str(copy))) == []
    damage(copy)
    problems = find_problems(open_package(str(copy)))
    assert {problem.path for problem in problems} == {"source/mlp.onnx"}
    assert problems[0].reason == reason


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("cryptography", reason="needs the package cryptography")
    folder = tmp_path_factory.mktemp("keys")
    make_key(folder, "good")
    make_key(folder, "other")
    return folder


class TestSignatures:
    """A signed package is what somebody trusted made, file by file."""

    @pytest.fixture
    def signed(self, keys: Path, package: Path, tmp_path: Path) -> Path:
        sign_package(package, tmp_path / "signed", read_signer(keys / "good.key", None))
        return tmp_path / "signed"

    def trusting(self, key: Path) -> ort.SessionOptions:
        options = ort.SessionOptions()
        options.add_session_config_entry(TRUST, str(key))
        return options

    def test_a_session_that_trusts_the_key_runs_it(self, keys: Path, signed: Path) -> None:
        assert verify_signature(open_package(str(signed)), str(keys / "good.pub"))
        assert find_problems(open_package(str(signed))) == []
        trusting = self.trusting(keys / "good.pub")
        with ort.InferenceSession(signed, trusting, providers=[OPENVINO]) as session:
            np.testing.assert_allclose(session.run(None, feed(mlp()))[0], expected()[0], rtol=1e-5)
            assert "signed by" in str(session.explain())

    def test_another_key_and_no_signature_are_refused(
        self, keys: Path, signed: Path, package: Path
    ) -> None:
        for root, key in ((signed, "other"), (package, "good")):
            with pytest.raises(ort.InvalidGraph) as refused:
                ort.InferenceSession(root, self.trusting(keys / f"{key}.pub"))
            assert refused.value.reason == "untrusted"
            with pytest.raises(ort.InvalidGraph):
                verify_signature(open_package(str(root)), str(keys / f"{key}.pub"))

    @pytest.mark.parametrize(
        "change",
        [
            lambda root: (root / "manifest.json").write_bytes(
                (root / "manifest.json").read_bytes().replace(b'"mlp"', b'"xyz"')
            ),
            lambda root: (root / "extra").write_text("x"),
            lambda root: (root / "source/mlp.onnx").unlink(),
            lambda root: (root / "source/mlp.onnx").write_bytes(b"x"),
            lambda root: shutil.copy(
                root / "openvino-npu-5010/mlp_npu5010_ctx.onnx",
                root / "openvino-npu-4000/mlp_npu4000_ctx.onnx",
            ),
        ],
        ids=["manifest", "extra", "missing", "changed", "swapped"],
    )
    def test_any_change_is_found(
        self, change: Callable[[Path], object], keys: Path, signed: Path
    ) -> None:
        change(signed)
        with pytest.raises(ort.InvalidGraph) as refused:
            verify_signature(open_package(str(signed)), str(keys / "good.pub"))
        assert refused.value.reason == "untrusted"

    def test_a_changed_manifest_is_refused_by_a_session(self, keys: Path, signed: Path) -> None:
        manifest = signed / "manifest.json"
        manifest.write_bytes(manifest.read_bytes().replace(b'"mlp"', b'"xyz"'))
        with pytest.raises(ort.InvalidGraph, match="was changed"):
            ort.InferenceSession(signed, self.trusting(keys / "good.pub"))

    def test_a_damaged_package_is_not_signed(
        self, keys: Path, package: Path, tmp_path: Path
    ) -> None:
        copy = tmp_path / "p"
        shutil.copytree(package, copy)
        (copy / "source/mlp.onnx").write_bytes(b"x")
        before = tree(copy)
        with pytest.raises(ort.InvalidGraph, match="is damaged, and is not signed"):
            sign_package(copy, copy, read_signer(keys / "good.key", None))
        assert tree(copy) == before


READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
! touch "$1/new" 2>/dev/null
shift
exec "$@"
"""
IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh"]
LOAD = """
import sys
import numpy as np
import ort_lite as ort
provider, root, feed_file, out = sys.argv[1:]
with np.load(feed_file) as feed, ort.InferenceSession(root, providers=[provider]) as session:
    np.save(out, session.run(None, dict(feed))[0])
"""


def test_a_package_on_a_read_only_mount_is_loaded(package: Path, tmp_path: Path) -> None:
    root = tmp_path / "mounted"
    shutil.copytree(package, root)
    try:
        subprocess.run([*IN_NAMESPACE, str(root), "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        pytest.skip(f"this system gives no read-only mount in a namespace of a user's: {exc}")
    np.savez(tmp_path / "feed.npz", **feed(mlp()))
    arguments = [OPENVINO, str(root), str(tmp_path / "feed.npz"), str(tmp_path / "out.npy")]
    subprocess.run(
        [*IN_NAMESPACE, str(root), sys.executable, "-c", LOAD, *arguments],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(ort.__file__).parents[1])},
    )
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected()[0], rtol=1e-4)
    assert tree(root) == tree(package)


def test_a_context_of_another_model_is_refused(tmp_path: Path) -> None:
    other = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2] a) => (float[2] b) { b = Neg (a) }
        """
    )
    (tmp_path / "m.onnx").write_bytes(other.SerializeToString())
    plan = BuildPlan(model=tmp_path / "m.onnx", contexts=npu_contexts(tmp_path))
    with pytest.raises(ort.InvalidArgument, match="it was compiled from another model"):
        build_package(plan, tmp_path / "p", force=False, progress=quiet)
    assert not (tmp_path / "p").exists()
