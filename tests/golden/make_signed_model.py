"""Makes a signed model with a file of weights, once for each version of the format.

    python tests/golden/make_signed_model.py FOLDER

The private key is thrown away. A folder that is there is never written into.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path[:0] = [str(Path(__file__).parents[1])]

import onnx  # noqa: E402 - the path comes first
from small_models import mlp  # noqa: E402 - as above

import ort_lite as ort  # noqa: E402 - as above
from ort_lite.context.signing import sign_file  # noqa: E402 - as above
from ort_lite.trust.private_keys import generate_key, read_signer  # noqa: E402 - as above


def main(folder: Path) -> None:
    """Write the model, its weights and the public key."""
    folder.mkdir()
    model = folder / "m.onnx"
    onnx.save(mlp(), model, save_as_external_data=True, location="w.bin", size_threshold=0)
    with TemporaryDirectory() as place:
        keys = generate_key(Path(place) / "release", None, force=False)
        sign_file(model, model, read_signer(keys.private, None), ort.SessionOptions())
        (folder / "release.pub").write_bytes(keys.public.read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
