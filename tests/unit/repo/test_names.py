"""Names that say what a thing is: no history words, no bare participles, no class name twice.

docs/CONTRIBUTING.md has the rule. Tests may use short names and are not searched.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("ctx_formats", "ort_lite", "eps", "benchmarks", "examples", ".ci")
HISTORY = {"found", "told", "given", "beside", "seen", "asked", "wanted", "tried"}
"""They say how a value came about; its name is the noun: entry, node, options."""

IRREGULAR = frozenset(
    """
    begun bound broken built chosen done drawn driven fallen given gone held hidden kept known
    laid left lent lost made meant seen sent shown spent told taken worn written found
    """.split()  # noqa: SIM905 - easier to read than a list
)
VERBS = {"embed", "exceed", "feed", "need", "proceed", "seed", "speed"}
PARTICLES = frozenset(
    """
    about after ahead alone along anew apart around as at away back before beside besides
    between by down for from here in into of off on out over there through to together under
    up with within without
    """.split()  # noqa: SIM905 - easier to read than a list
)
NAMED_BY_HISTORY = {
    ("ctx_formats/errors.py", "found"): "an attribute of the public FormatError",
    ("ort_lite/cli/checks.py", "found"): "a key of `ort-lite doctor --json`",
    (
        "ort_lite/ep/factory.py",
        "tried",
    ): "a field of the public Probe, and a key of `devices --json`",
}
NAMED_BY_PARTICIPLE = {
    (
        "ort_lite/ep/interface.py",
        "unsupported",
    ): "public: the verdict EP_UNSUPPORTED of onnxruntime",
    ("ort_lite/testing/subject.py", "taken"): "a fixture of the public conformance suite",
}
NAMED_TWICE = {
    "Recurrence": "of the CPU EP, and an operation of OpenCL's IR, after which kernels are named",
    "Sample": "an operation of OpenCL's IR, after which kernels are named, and a benchmark's model",
    "CApi": "OpenCL's and OpenVINO's C API",
    "InferenceSession": "onnxruntime's class: ours, the stand-in's and that of its binding",
    "ModelCompiler": "onnxruntime's class: ours and the stand-in's",
    "Program": "OpenCL's object, and the example provider's",
    "Shape": "OpenVINO's ov_shape_t, and the same in a benchmark that imports nothing of ours",
    "Signature": "of a partition, and of the example provider's program",
    "SparseTensor": "ONNX's SparseTensorProto, and onnxruntime's two classes of that name",
}


@dataclass(frozen=True, slots=True)
class Names:
    """Names that a module gives to things.

    Attributes:
        path: Of the module, from the repository's root.
        values: Variables, parameters and attributes that it gives a value to.
    """

    path: str
    values: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)


@cache
def modules() -> tuple[Names, ...]:
    """The names of each module; its syntax tree is walked once and not kept."""
    return tuple(
        names_in(path)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "__pycache__" not in path.parts
    )


def names_in(path: Path) -> Names:
    names = Names(path.relative_to(ROOT).as_posix())
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.arg):
            names.values.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.values.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.values.add(node.attr)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.values.add(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.functions.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.classes.add(node.name)
    return names


def is_participle(name: str) -> bool:
    """Whether a name is a participle, or one with particles: `widened`, `_made_by`, `laid_out`."""
    first, *rest = name.strip("_").split("_")
    participle = first in IRREGULAR or (first.endswith("ed") and first not in VERBS)
    return participle and PARTICLES.issuperset(rest)


def test_what_counts_as_a_participle() -> None:
    participles = ["widened", "_made_by", "laid_out", "held", "_bound"]
    others = ["padded_axis", "read_index", "embed", "is_signed"]
    assert [name for name in (*participles, *others) if is_participle(name)] == participles


def test_no_value_is_named_by_its_history() -> None:
    named = {
        (module.path, name)
        for module in modules()
        for name in module.values
        if name.strip("_") in HISTORY
    }
    assert named == NAMED_BY_HISTORY.keys()


def test_functions_are_verbs_not_bare_participles() -> None:
    named = {
        (module.path, name)
        for module in modules()
        for name in module.functions
        if is_participle(name) or name.strip("_") in HISTORY
    }
    assert named == NAMED_BY_PARTICIPLE.keys()


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(set)
    for module in modules():
        for name in module.classes:
            if not name.startswith("_"):
                places[name].add(module.path)
    assert {name for name, paths in places.items() if len(paths) > 1} == NAMED_TWICE.keys()
