"""What a process holds at a moment: threads, descriptors, maps, memory, temporary files."""

from __future__ import annotations

import gc
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

PAGE = 4096
OURS = "ort_lite"
"""How the names of our temporary files begin; those beside a result begin with a dot and end with
.tmp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One moment of a process.

    Attributes:
        done: Pieces of work before it.
        maps: Of /proc/self/maps, by `count_maps`.
        files: Temporary files of ours, in the folder for such and in the working folder.
        resident: Kilobytes.
        objects: That the garbage collector follows.
    """

    done: int
    threads: int
    descriptors: int
    maps: int
    files: int
    resident: int
    objects: int

    def as_row(self) -> dict[str, Any]:
        """For JSON and CSV."""
        return asdict(self)


CURVES = tuple(field.name for field in fields(Sample) if field.name != "done")


def read_sample(done: int, folder: Path) -> Sample:
    """What this process holds now, once nothing waits for the garbage collector."""
    gc.collect()
    proc = Path("/proc/self")
    return Sample(
        done=done,
        threads=len(list((proc / "task").iterdir())),
        descriptors=len(list((proc / "fd").iterdir())),
        maps=count_maps((proc / "maps").read_text()),
        files=len(temporary_files(folder)),
        resident=int((proc / "statm").read_text().split()[1]) * PAGE // 1024,
        objects=len(gc.get_objects()),
    )


def count_maps(text: str) -> int:
    """Maps of a process; adjoining ones without a file and with the same permissions are one.

    oneDNN makes memory of malloc executable and writable again for each kernel that it compiles
    (mprotect), and the system does not join the pieces: a process that only compiles and imports
    with openvino has 50 of them in its heaps after 25 times.
    """
    count, end, kind = 0, "", ("", "")
    for line in text.splitlines():
        places, permissions, _, _, _, *name = line.split(maxsplit=5)
        start, stop = places.split("-")
        same = start == end and not name and kind == (permissions, "")
        count += not same
        end, kind = stop, (permissions, "".join(name))
    return count


def temporary_files(folder: Path) -> list[Path]:
    """Those that a session or a cache makes, and should have removed."""
    places = [path for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(OURS)]
    return places + [path for path in folder.rglob(".*") if path.name.endswith(".tmp")]
