"""Makes a model cache with a key, once for each version of its MAC.

    python tests/golden/make_keyed_cache.py FOLDER

Writes FOLDER/cache.tar.xz: the cache with one entry and one remembered digest, an archive of the
entry, and the key. A folder that is there is never written into.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path[:0] = [str(Path(__file__).parents[1])]

from cached_starts import start  # noqa: E402 - the path comes first
from small_models import sandwich  # noqa: E402 - as above

from ort_lite.model_cache.secret import read_secret  # noqa: E402 - as above
from ort_lite.model_cache.store import CacheStore  # noqa: E402 - as above
from ort_lite.model_cache.transfer import export_entries  # noqa: E402 - as above

SECRET = "0123456789abcdef" * 4
"""Of no use to anybody: the entry holds a model of the tests."""
OLD_NS = 1_500_000_000
"""Age from which a file's digest is remembered."""


def main(target: Path) -> None:
    """Write the cache, its archive and its key."""
    target.mkdir()
    with TemporaryDirectory() as place:
        folder, model = Path(place) / "files", Path(place) / "m.onnx"
        folder.mkdir()
        secret = folder / "cache.secret"
        secret.write_text(f"{SECRET}\n", encoding="ascii")
        secret.chmod(0o600)
        model.write_bytes(sandwich().SerializeToString())
        while time.time_ns() - model.stat().st_ctime_ns < OLD_NS:
            time.sleep(0.1)
        key = {"session__ep_context_cache_key": str(secret)}
        states = [start(model, folder / "cache", **key)[0] for _ in range(2)]
        if states != ["stored", "hit"]:
            raise SystemExit(f"the cache was not used: {states}")
        store = CacheStore(folder / "cache", read_secret(str(secret)))
        shutil.rmtree(store.locks)
        export_entries(store, store.sound_entries(), folder / "seed.tar")
        shutil.make_archive(str(target / "cache"), "xztar", folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
