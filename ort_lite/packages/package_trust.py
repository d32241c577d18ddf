"""Whether a model package is signed by somebody who is trusted: its manifest, then its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.directory_digest import list_files
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.mapped_file import open_descriptor, stamp_of
from ctx_formats.package_manifest import MANIFEST
from ctx_formats.package_signature import MAX_FILE_BYTES, SIGNATURE_FILE, read_signatures
from ctx_formats.signatures import KEY_SHOWN, WHOLE, SignedFile, describe_keys
from ort_lite.trust.ed25519 import verifies
from ort_lite.trust.public_keys import trusted_keys
from ort_lite.trust.verification import untrusted_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_formats.package_reader import PackageFolder
    from ctx_formats.package_signature import PackageSignature
    from ort_lite.trust.public_keys import PublicKey

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class PackageProof:
    """A verified signature of a package's manifest, by a trusted key."""

    record: PackageSignature
    key: PublicKey


def require_signed_manifest(folder: PackageFolder, trust: str) -> PackageProof:
    """The proof that a trusted key has signed a package's manifest; no other file is read.

    Raises:
        InvalidGraph: Reason untrusted; it is not signed, or was changed since.
        InvalidArgument: The keys cannot be read.
        Fail: The package cryptography is missing.
    """
    keys = {key.der: key for key in trusted_keys(trust)}
    signatures = _read_signatures(folder)
    known = [one for one in signatures if one.public_key in keys]
    if not known:
        signers = f"signed by {describe_keys(signatures)} alone" if signatures else "not signed"
        raise untrusted_error(f"the package {folder.root}: {signers}")
    size, digest = len(folder.manifest_bytes), blake3(folder.manifest_bytes).hexdigest()
    for record in known:
        if (record.model_size, record.model_blake3) != (size, digest):
            continue
        if verifies(record.public_key, record.signature, record.message):
            return PackageProof(record, keys[record.public_key])
    raise untrusted_error(
        f"the package {folder.root}: {MANIFEST} or the signature of "
        f"{known[0].key_id[:KEY_SHOWN]} was changed"
    )


def require_signed_files(folder: PackageFolder, proof: PackageProof) -> None:
    """Check that the files of a package are those that were signed, no more and no less.

    Raises:
        InvalidGraph: Reason untrusted; one differs, is missing or is not covered.
    """
    signed = {one.location: one for one in proof.record.files}
    present = signable_files(folder.root)
    for location in sorted(signed.keys() | present.keys()):
        if location not in present:
            raise untrusted_error(f"the package {folder.root}: the signed {location!r} is missing")
        if location not in signed:
            raise untrusted_error(f"the package {folder.root}: {location!r} is not signed")
        if sign_file_entry(location, present[location]) != signed[location]:
            raise untrusted_error(f"the package {folder.root}: {location!r} is not what was signed")


def signable_files(root: str) -> dict[str, str]:
    """Paths of all files of a package but its manifest and its signatures, by relative name.

    Raises:
        InvalidGraph: Reason untrusted; the package has a symlink, a device or a FIFO.
    """
    try:
        files = list_files(root)
    except FormatError as exc:
        raise untrusted_error(f"the package {root} cannot be covered: {exc}") from exc
    return {name: path for name, path in files.items() if name not in (MANIFEST, SIGNATURE_FILE)}


def sign_file_entry(location: str, path: str) -> SignedFile:
    """Entry of a signature for a file of a package.

    Raises:
        InvalidGraph: Reason untrusted; it cannot be read.
    """
    digest, size = blake3(), 0
    try:
        for chunk in _read_chunks(path):
            digest.update(chunk)
            size += len(chunk)
    except (FormatError, OSError) as exc:
        raise untrusted_error(f"{path} cannot be read: {exc}") from exc
    return SignedFile(location=location, size=size, part=WHOLE, blake3=digest.hexdigest())


def describe_signers(folder: PackageFolder) -> tuple[str, ...]:
    """Ids of the keys that claim to have signed a package; nothing is verified."""
    return tuple(one.key_id[:KEY_SHOWN] for one in _read_signatures(folder))


def _read_signatures(folder: PackageFolder) -> tuple[PackageSignature, ...]:
    path = os.path.join(folder.root, SIGNATURE_FILE)  # noqa: PTH118 - as all paths of the reader
    if not os.path.lexists(path):
        return ()
    data = bytearray()
    try:
        for chunk in _read_chunks(path):
            data += chunk
            if len(data) > MAX_FILE_BYTES:
                break  # read_signatures refuses it
        return read_signatures(bytes(data))
    except (FormatError, OSError) as exc:
        raise untrusted_error(f"the package {folder.root}: {exc}") from exc


def _read_chunks(path: str) -> Iterator[bytes]:
    descriptor = open_descriptor(path, follow_symlink=False)
    try:
        stamp_of(descriptor, path)
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    finally:
        os.close(descriptor)
