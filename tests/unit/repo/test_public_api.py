"""The public names are those of a list that one changes on purpose."""

from __future__ import annotations

import ast
from pathlib import Path

from onnxruntime.capi import onnxruntime_pybind11_state as theirs

import ort_lite
from ort_lite.capi import onnxruntime_pybind11_state as binding

LIST = Path(__file__).with_name("public_api.txt")


def test_the_public_names_are_those_of_the_list() -> None:
    agreed = LIST.read_text(encoding="utf-8").split()
    assert sorted(ort_lite.__all__) == agreed, f"edit {LIST.name} if this is meant"


def test_every_public_name_can_be_had() -> None:
    for name in ort_lite.__all__:
        assert getattr(ort_lite, name) is not None


def test_dir_shows_the_public_names_before_any_is_used() -> None:
    assert set(ort_lite.__all__) <= set(dir(ort_lite))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ort_lite, "InferenceSessions")


def test_type_checkers_see_the_names_where_they_live() -> None:
    """What is imported for them alone is what is imported when a name is used."""
    tree = ast.parse(Path(ort_lite.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {(node.module, alias.name) for node in imports for alias in node.names}
    homes = {(module, name) for module, names in ort_lite._HOMES.items() for name in names}
    assert seen == homes
    assert sorted(ort_lite.__all__) == sorted([*(name for _, name in homes), "__version__"])


def test_the_binding_has_the_public_names_that_onnxruntime_s_has() -> None:
    """And nothing under a name by which onnxruntime's means something else."""
    for name in binding.__all__:
        assert hasattr(theirs, name), name
        assert getattr(binding, name) is not None
    kept_out = set(ort_lite.__all__) - set(binding.__all__)
    assert not {name for name in kept_out if hasattr(theirs, name)}
    assert binding.SparseTensor is not ort_lite.SparseTensor
    assert not hasattr(binding, "check_compatibility")
