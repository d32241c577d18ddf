"""The slices of the tests that run on the Windows machine, quickest first."""

from __future__ import annotations

from pathlib import Path

SLICES = {
    "formats": ("tests/unit/ctx_formats", "tests/unit/ort_format"),
    "others": ("tests/unit/ep", "tests/unit/quantization", "tests/unit/transforms"),
    "races": ("tests/races",),
    "property": ("tests/property",),
    "trust": ("tests/unit/trust",),
    "packages": ("tests/unit/packages",),
    "plugin": ("tests/plugin",),
    "hw": ("tests/unit/hw",),
    "stand_in": ("tests/unit/as_onnxruntime",),
    "golden": ("tests/golden",),
    "cpu": ("tests/unit/cpu", "tests/unit/cpu_contrib", "tests/unit/cpu_ml"),
    "openvino": ("tests/unit/openvino",),
    "execution": ("tests/unit/execution",),
    "model_cache": ("tests/unit/model_cache",),
    "cli": ("tests/unit/cli",),
    "interop": ("tests/interop",),
    "core": ("tests/unit/core",),
    "opencl": ("tests/unit/opencl",),
    "conformance": ("tests/conformance",),
    "hostile": ("tests/hostile",),
}
LAST = ("test_fuzz.py", "test_attacks.py")
"""Files of a slice that run after its others, because they take longest."""


class UnknownSliceError(Exception):
    """A name that is neither a slice nor a test file or folder of the checkout."""


def files_of(name: str, root: Path) -> tuple[str, ...]:
    """The test files of a slice, of a folder or a file itself, relative to the checkout `root`.

    Raises:
        UnknownSliceError: There is no such slice, test file or folder.
    """
    places = SLICES.get(name) or (_inside(name, root),)
    found = {
        path
        for place in places
        for path in ([root / place] if place.endswith(".py") else (root / place).rglob("test_*.py"))
    }
    ordered = sorted(found, key=lambda path: (*(path.name == last for last in LAST[::-1]), path))
    if not ordered:
        raise UnknownSliceError(f"{name} has no test files")
    return tuple(path.relative_to(root).as_posix() for path in ordered)


def _inside(name: str, root: Path) -> str:
    """A path of `tests`, relative to the checkout; the user may have given it from elsewhere."""
    if "::" in name:
        raise UnknownSliceError(f"{name} names a test; name its file: {name.partition('::')[0]}")
    path = next((path for path in (Path(name), root / name) if path.exists()), None)
    if path is None:
        raise UnknownSliceError(
            f"no slice, test file or folder {name}; the slices are {', '.join(SLICES)}"
        )
    path = path.resolve()
    if not path.is_relative_to(root / "tests"):
        raise UnknownSliceError(f"{name} is not in {root / 'tests'}")
    if path.is_file() and not (path.name.startswith("test_") and path.suffix == ".py"):
        raise UnknownSliceError(f"{name} is not a test file (test_*.py)")
    return path.relative_to(root).as_posix()
