"""One engine's compiled models, by a process of its own: `contexts.py ENGINE MODEL FOLDER`.

Kinds of context may follow, where not all are wanted.

Prints a JSON object: by kind of context its path, or the reason why none was made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness.engines import ENGINES, AbsentError

MODULE = "benchmarks.harness.contexts"

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.harness.samples import Sample


def prepare(engine: str, sample: Sample, kinds: Sequence[str] = ()) -> dict[str, Path | str]:
    """`engine`'s compiled models of `sample` by kind: a path, or the reason why none was made.

    Args:
        engine: One of ENGINES.
        sample: Its model is compiled into the folder of its inputs.
        kinds: Which; all that the engine has where none is given.

    Raises:
        subprocess.CalledProcessError: It could not compile the model.
    """
    command = [sys.executable, "-m", MODULE, engine, str(sample.path), str(sample.feed.parent)]
    done = subprocess.run([*command, *kinds], stdout=subprocess.PIPE, text=True, check=True)
    return {
        kind: answer["absent"] or Path(answer["path"])
        for kind, answer in json.loads(done.stdout).items()
    }


def main(
    engine_name: str, model: Path, folder: Path, chosen: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Write them; by kind the path, and why there is none or ""."""
    kinds = ENGINES[engine_name].contexts
    kinds = {kind: kinds[kind] for kind in chosen or kinds}
    try:
        engine = ENGINES[engine_name]()
    except AbsentError as exc:
        return {kind: {"path": "", "absent": str(exc)} for kind in kinds}
    made = {}
    for kind, suffix in kinds.items():
        path = folder / f"{engine_name}_{model.stem}_{kind}{suffix}"
        try:
            engine.write_context(model, path, embed=kind == "embedded")
            absent = "" if path.exists() else f"{engine_name} compiled nothing of {model.stem}"
        except AbsentError as exc:
            absent = str(exc)
        made[kind] = {"path": str(path), "absent": absent}
    return made


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the answer
    with answers:
        json.dump(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]), answers)
