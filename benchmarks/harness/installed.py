"""A Python with this environment's packages, as a user has them who installed them with pip.

A checkout's environment runs code at every start of its interpreter: the finder of an editable
install, and setuptools' hook. That takes as long again as the interpreter, and on all sides alike.
"""

from __future__ import annotations

import sys
import sysconfig
import venv
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.harness.samples import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def installed_python() -> Iterator[Path]:
    """An interpreter that finds the packages by path alone; gone when the block ends.

    Lines of a .pth file that are paths are only looked at, and the .pth files in those folders are
    not. What packages installed elsewhere under the prefix is linked: drivers, libraries.
    """
    with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
        venv.create(folder, symlinks=True)
        _link_rest(Path(sys.prefix), Path(folder))
        _link_rest(Path(sys.prefix) / "lib", Path(folder) / "lib")
        inside = {"base": folder, "platbase": folder}
        packages = Path(sysconfig.get_path("purelib", "venv", inside))
        here = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(ROOT))
        (packages / "benchmarks.pth").write_text("\n".join(dict.fromkeys(here)), encoding="utf-8")
        yield Path(sysconfig.get_path("scripts", "venv", inside)) / Path(sys.executable).name


def _link_rest(source: Path, target: Path) -> None:
    for path in source.iterdir():
        if not (target / path.name).exists():
            (target / path.name).symlink_to(path)
