"""Tunings of a device, kept in the user's cache folder: one JSON file per device.

    {"format": 1, "identity": {...}, "tuned": [{problem and tiling}, ...]}

The newest rows are last, and the oldest go beyond `MOST_ROWS`. The file is replaced as a whole:
of two processes that add to it at once one may lose rows, which are then measured again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.atomic_write import write_file
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from eps.opencl.payload.table import array
from eps.opencl.tuning.rows import read_tuned_rows, rows_of
from ort_lite.ep import get_logger, user_cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.compile.tilings import Problem, Tiling

log = get_logger(__name__)

FORMAT = 1
FOLDER = "opencl_tuning"
MOST_ROWS = 4096
MOST_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class TuningCache:
    """The file of one device; never in the way: what it cannot read or write it warns about."""

    folder: Path
    identity: HardwareIdentity

    @property
    def path(self) -> Path:
        """File name made of everything that distinguishes this device and driver from others."""
        text = json.dumps(self.identity.to_mapping(), sort_keys=True)
        return self.folder / f"{blake3(text.encode()).hexdigest()[:24]}.json"

    def read(self) -> dict[Problem, Tiling]:
        """Read the stored tunings; none, with a warning, if the file is damaged."""
        try:
            with self.path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as exc:
            log.warning("%s is not read, tuning measures again: %s", self.path, exc)
            return {}
        try:
            return self._parse(data)
        except FormatError as exc:
            log.warning("%s is not used and will be written again: %s", self.path, exc)
            return {}

    def _parse(self, data: bytes) -> dict[Problem, Tiling]:
        if len(data) > MOST_BYTES:
            raise FormatError("cache", f"over {MOST_BYTES} bytes", "less")
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise FormatError("cache", str(exc)[:80], "JSON") from exc
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FormatError("cache.format", str(content)[:40], f"format {FORMAT}")
        if content.get("identity") != self.identity.to_mapping():
            raise FormatError("cache.identity", str(content.get("identity"))[:80], "this device's")
        return read_tuned_rows(array(content.get("tuned"), "cache.tuned"))

    def add(self, tilings: Mapping[Problem, Tiling]) -> None:
        """Keep `tilings`, too; the session goes on where that cannot be."""
        kept = {p: t for p, t in self.read().items() if p not in tilings}
        rows = rows_of({**kept, **tilings})[-MOST_ROWS:]
        content = {"format": FORMAT, "identity": self.identity.to_mapping(), "tuned": rows}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(self.path, json.dumps(content, indent=1).encode(), replace=True)
        except OSError as exc:
            log.warning("%s is not written, tuning will measure again: %s", self.path, exc)


def tuning_folder(chosen: str) -> Path:
    """The folder of provider option `tuning_cache`, else one in the user's cache folder."""
    return Path(chosen) if chosen else Path(user_cache_folder(os.environ)) / FOLDER
