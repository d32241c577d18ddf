"""A model that was signed in version 1 of the format verifies for as long as that is read.

`make_signed_model.py` made it. The message is put together here by the words of
docs/formats/signatures.md, with none of our writers.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from base64 import b64decode
from pathlib import Path

import numpy as np
import onnx
import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key
from onnx.reference import ReferenceEvaluator
from signed_models import assert_untrusted, options
from small_models import feed, mlp

import ort_lite as ort
from ctx_formats.signatures import SignatureRecord

FOLDER = Path(__file__).with_name("signature_1")


def record_of(path: Path) -> tuple[str, dict[str, object], int]:
    """Name and content of the only signature, and how many bytes of the file are in front."""
    (entry,) = onnx.load(path, load_external_data=False).metadata_props
    behind = onnx.ModelProto(metadata_props=[entry]).SerializeToString()
    return entry.key, json.loads(entry.value), path.stat().st_size - len(behind)


def test_it_is_verified_and_computes_what_it_did() -> None:
    made = options(FOLDER / "release.pub")
    with ort.InferenceSession(FOLDER / "m.onnx", made, ["CPUExecutionProvider"]) as session:
        found = session.run(None, feed(mlp()))[0]
    expected = ReferenceEvaluator(mlp()).run(None, feed(mlp()))[0]  # type: ignore[index] # `run` returns a list
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_it_is_as_the_document_says() -> None:
    name, record, size = record_of(FOLDER / "m.onnx")
    der = b64decode(str(record["public_key"]))
    assert name == f"ort_lite.signature.{hashlib.sha256(der).hexdigest()[:16]}"
    key = load_der_public_key(der)
    assert key == load_pem_public_key((FOLDER / "release.pub").read_bytes())
    signature = b64decode(str(record.pop("signature")))
    spelled = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    key.verify(signature, b"ort_lite context signature v1\0" + spelled)  # type: ignore[union-attr, call-arg] # Ed25519's
    content = (FOLDER / "m.onnx").read_bytes()[:size]
    assert record["model"] == {"blake3": blake3(content).hexdigest(), "size": size}
    weights = (FOLDER / "w.bin").read_bytes()
    digest = {"blake3": blake3(weights).hexdigest(), "size": len(weights)}
    assert record["files"] == [{"location": "w.bin", "part": "whole", **digest}]


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    """Also one that its key has signed: a reader cannot know what it covers."""
    shutil.copytree(FOLDER, tmp_path / "copy")
    path = tmp_path / "copy" / "m.onnx"
    path.write_bytes(
        path.read_bytes().replace(b'"ort_lite_signature":1', b'"ort_lite_signature":2')
    )
    assert_untrusted(
        lambda: ort.InferenceSession(path, options(FOLDER / "release.pub")), match="format 2"
    )


@pytest.mark.parametrize("field", sorted(SignatureRecord.__slots__))
def test_every_field_of_a_record_is_in_the_document(field: str) -> None:
    words = {"public_key": "public_key", "model_blake3": "model", "model_size": "model"}
    text = (Path(__file__).parents[2] / "docs/formats/signatures.md").read_text("utf-8")
    assert f"| `{words.get(field, field)}` |" in text
