"""A writer of packages that dies leaves the old package or the new one, never half of one."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

from built_packages import tree
from package_files import variant_of, write_plain
from system_limits import needs_posix

import ort_lite as ort

SCRIPT = Path(__file__).with_name("killed_package_writer.py")
ROOT = Path(__file__).parents[2]


@needs_posix  # the writer is a fork, killed by a signal
def test_a_killed_writer_leaves_the_old_package_or_the_new_one(tmp_path: Path) -> None:
    def double(manifest: dict[str, dict[str, dict[str, dict[str, object]]]]) -> None:
        body = copy.deepcopy(variant_of(manifest)) | {"variant_directory": "cpu"}
        manifest["components"]["model"]["variants"]["more"] = body

    package = write_plain(tmp_path / "p", double)
    old = tree(package)
    done = subprocess.run(
        [sys.executable, SCRIPT, package, tmp_path / "copies"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps >= 8, "folders, files, their syncs, the exchange and removals"
    new = []
    for step in range(1, steps + 1):
        found = tmp_path / "copies" / str(step) / "p"
        variants = ort.ModelPackage(found).variants
        new.append(variants == ("cpu",))
        assert new[-1] or tree(found) == old
    assert new == sorted(new), "once it is there, it stays"
    assert not new[0]
    assert new[-1]
