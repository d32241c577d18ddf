"""onnxruntime as it is on Intel's processors, on AMD's: `any_processor.py FOLDER`.

onnxruntime-ep-openvino offers a device only where ONNX Runtime reports a processor of Intel's,
though OpenVINO's CPU plug-in serves AMD's as well. This makes a package of links to the installed
onnxruntime in which two libraries are copies, and one number of each copy is another: the PCI
vendor of AMD in ONNX Runtime's table of processors (core/platform/posix/hardware, `CpuVendorInfo`)
is Intel's. All else is ONNX Runtime's. With FOLDER first in PYTHONPATH tests and benchmarks meet
the plug-in on a machine without an Intel processor.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.util import find_spec
from pathlib import Path

AMD, INTEL = (0x1022).to_bytes(4, "little"), (0x8086).to_bytes(4, "little")
# Two rows of the table: (length of the name, its address, vendor, cpuinfo's number of the next).
_ROWS = re.compile(
    rb"\x03\0{7}.{8}(" + re.escape(AMD) + rb")\0{4}.{8}\x05\0{7}.{8}" + re.escape(INTEL), re.DOTALL
)
_LIBRARIES = ("onnxruntime_pybind11_state*.so", "libonnxruntime.so.*")
"""That of the Python package, and that of the C API."""


class TableError(Exception):
    """This build of onnxruntime has no such table, or several."""


def link_package(folder: Path) -> Path:
    """Make the package in `folder`, which need not exist.

    Returns:
        `folder`, for PYTHONPATH.

    Raises:
        TableError: The installed onnxruntime is built otherwise.
    """
    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        raise TableError("onnxruntime is not installed")
    installed = Path(spec.origin).parent
    changed = {}
    for pattern in _LIBRARIES:
        libraries = list((installed / "capi").glob(pattern))
        if len(libraries) != 1:
            raise TableError(f"{installed} has {len(libraries)} libraries {pattern}, not one")
        changed[libraries[0].name] = with_intels_vendor(libraries[0].read_bytes())
    package = folder / "onnxruntime"
    _link_all(installed, package, apart={"capi"})
    _link_all(installed / "capi", package / "capi", apart={*changed})
    for name, data in changed.items():
        (package / "capi" / name).write_bytes(data)
    return folder


def with_intels_vendor(library: bytes) -> bytes:
    """The library with Intel's vendor in AMD's row.

    Raises:
        TableError: There is not exactly one such table in it.
    """
    found = [match.start(1) for match in _ROWS.finditer(library)]
    if len(found) != 1:
        raise TableError(f"{len(found)} tables of processors in onnxruntime's library, not one")
    return library[: found[0]] + INTEL + library[found[0] + len(AMD) :]


def _link_all(source: Path, target: Path, *, apart: set[str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.name not in {*apart, "__pycache__"}:
            (target / path.name).symlink_to(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to make it; need not exist")
    sys.stdout.write(f"{link_package(parser.parse_args().folder.absolute())}\n")
