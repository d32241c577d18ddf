"""A folder that distributions are installed into, without a network and without a build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "example_ep"
EXAMPLE = "ExampleExecutionProvider"


@dataclass(frozen=True)
class Site:
    """A folder on sys.path that distributions are installed into."""

    folder: Path

    def install(self, project: Path) -> None:
        """What an installer makes of a project: its packages, its .dist-info."""
        text = (project / "pyproject.toml").read_text(encoding="utf-8")
        content = tomllib.loads(text)
        for package in content["tool"]["setuptools"]["packages"]:
            shutil.copytree(project / package, self.folder / package)
        about = content["project"]
        self.add_distribution(about["name"], about["entry-points"], about["version"])

    def add_distribution(
        self, name: str, groups: Mapping[str, Mapping[str, str]], version: str = "1.0"
    ) -> Path:
        """A .dist-info alone: METADATA and entry_points.txt (packaging specifications)."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        lines = []
        for group, points in groups.items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items()), ""]
        (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        return info


def in_a_child(site: Site, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Python with the site's distributions installed, as a user's program has them."""
    path = os.pathsep.join(map(str, (site.folder, ROOT)))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
