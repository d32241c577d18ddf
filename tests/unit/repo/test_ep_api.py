"""What the author of an execution provider imports: one list, loaded when it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from ort_lite import ep, kernel_registry
from ort_lite.ep import kernels

LIST = Path(__file__).with_name("ep_api.txt")
ROOT = Path(__file__).parents[3]


def test_the_names_are_those_of_the_list() -> None:
    agreed = LIST.read_text(encoding="utf-8").split()
    assert sorted(ep.__all__) == agreed, f"edit {LIST.name} if this is meant"


@pytest.mark.parametrize("name", ep.__all__)
def test_each_name_is_what_its_module_defines(name: str) -> None:
    assert getattr(ep, name) is getattr(import_module(ep._HOME_OF[name]), name)


def test_dir_shows_the_names_before_any_is_used() -> None:
    assert set(ep.__all__) <= set(dir(ep))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'ort_lite.ep' has no attribute 'Kernels'"):
        _ = ep.Kernels


def test_type_checkers_see_the_names_where_they_live() -> None:
    tree = ast.parse(Path(ep.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {(alias.name, node.module) for node in imports for alias in node.names}
    assert seen == set(ep._HOME_OF.items())


def test_importing_the_package_imports_no_other_module_of_ours() -> None:
    code = "import sys, ort_lite.ep; print([n for n in sys.modules if n.startswith('ort_lite.')])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['ort_lite.ep']"


def test_the_former_module_of_kernels_has_the_same_objects() -> None:
    """docs/custom_kernels.md named it before there was `ort_lite.ep`."""
    for name in kernel_registry.__all__:
        assert getattr(kernel_registry, name) is getattr(kernels, name)


def test_the_example_of_the_package_is_an_execution_provider() -> None:
    """Its code is in the docstring, indented."""
    lines = (ep.__doc__ or "").splitlines()
    code = "\n".join(line[4:] for line in lines if line.startswith("    ") or not line)
    names = {name: getattr(ep, name) for name in ep.__all__}
    namespace = {
        **names,
        "HardwareIdentity": import_module("ctx_formats.identity").HardwareIdentity,
    }
    exec(compile(code, "docstring", "exec"), namespace)
    provider = namespace["FACTORY"].create({})
    assert isinstance(provider, ep.ExecutionProvider)
    assert namespace["FACTORY"].probe().devices[0].identity == provider.identity
    (compiled,) = provider.compile([object()])
    assert compiled.run([21]) == [42]
