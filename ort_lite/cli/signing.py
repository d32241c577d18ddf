"""`ort-lite keygen`, `sign` and `verify`: signatures that prove who made a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import json_option, print_json, print_line
from ort_lite.cli.path_type import PATH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ort_lite.trust.private_keys import Signer

passphrase_option = click.option(
    "--passphrase-file", type=PATH, metavar="FILE",
    help="File whose first line is the private key's passphrase.",
)  # fmt: skip


@click.command(short_help="Create a key pair for signing models.")
@click.argument("name", type=PATH)
@passphrase_option
@click.option("--ask-passphrase", is_flag=True, help="Prompt for a passphrase and encrypt the key.")
@click.option("--force", is_flag=True, help="Replace existing keys, which are lost.")
@json_option
def keygen(
    name: Path, *, passphrase_file: Path | None, ask_passphrase: bool, force: bool, as_json: bool
) -> ExitCode:
    """Create an Ed25519 key pair: NAME.key, readable only by its owner, and NAME.pub.

    Machines that load models need NAME.pub, named in session.ep_context_trust.
    """
    from ort_lite.trust.private_keys import generate_key, read_passphrase
    from ort_lite.trust.public_keys import PublicKey

    if ask_passphrase and passphrase_file is not None:
        raise click.UsageError("--ask-passphrase and --passphrase-file cannot be combined")
    secret = read_passphrase(passphrase_file) if passphrase_file is not None else None
    if ask_passphrase:
        typed: str = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
        secret = typed.encode()
    made = generate_key(name, secret, force=force)
    key = PublicKey(made.public_key, str(made.public)).id
    if as_json:
        print_json({"private": str(made.private), "public": str(made.public), "key": key})
        return ExitCode.OK
    print_line(f"{made.private}  private{', encrypted' if secret else ''}: keep it to yourself")
    print_line(f"{made.public}  public, key {key}")
    return ExitCode.OK


@click.command(short_help="Sign a model and its payload and weight files.")
@click.argument("model", type=PATH)
@click.option("--key", type=PATH, required=True, help="The private key.")
@passphrase_option
@click.option(
    *("-o", "--output"), type=PATH,
    help="Path of the signed model. Default: MODEL, replaced atomically.",
)  # fmt: skip
@json_option
def sign(
    model: Path, *, key: Path, passphrase_file: Path | None, output: Path | None, as_json: bool
) -> ExitCode:
    """Sign MODEL, plain or compiled, and its payload and weight files.

    Verifies the digests of payloads first. Keeps valid signatures by other keys.
    """
    from ort_lite.context.signing import sign_file
    from ort_lite.options import SessionOptions

    target = output or model
    record = sign_file(model, target, open_signer(key, passphrase_file), SessionOptions())
    files = [{"path": one.location, "covered": one.part} for one in record.files]
    if as_json:
        print_json({"model": str(target), "key": record.key_id, "files": files})
        return ExitCode.OK
    print_line(f"{target}: signed with key {record.key_id}")
    for one in files:
        print_line(f"  covers {one['path']} ({one['covered']})")
    return ExitCode.OK


@click.command(short_help="Verify a model's signature against trusted keys.")
@click.argument("model", type=PATH)
@click.option(
    "--trust", multiple=True, required=True, metavar="PUBLIC_KEY",
    help="A public-key file, or a folder of them. May be repeated.",
)  # fmt: skip
@json_option
def verify(model: Path, *, trust: Sequence[str], as_json: bool) -> ExitCode:
    """Verify the signature of MODEL, its payloads and weights; exit code 4 if it fails.

    Imports no vendor SDK. `ort-lite check` reports whether the model fits this machine.
    """
    from ort_lite.context.signature_report import signatures_of
    from ort_lite.context.signing import verify_file

    proof = verify_file(model, trust)
    others = [one for one in signatures_of(model) if one.key != proof.key.id]
    if as_json:
        print_json(
            {
                "model": str(model),
                "key": proof.key.id,
                "key_file": proof.key.file,
                "files": [one.location for one in proof.record.files],
                "other_signatures": [one.to_json() for one in others],
            }
        )
        return ExitCode.OK
    print_line(f"{model}: signed by {proof.key.id} ({proof.key.file})")
    for one in others:
        print_line(f"  also: {one}")
    return ExitCode.OK


def signing_entries(key: Path | None, passphrase_file: Path | None) -> dict[str, str]:
    """Session configuration entries for signing; empty if nothing is to be signed.

    Raises:
        UsageError: A passphrase has no key.
        InvalidArgument: The key or its passphrase cannot be read.
    """
    from ort_lite.context.keys import PASSPHRASE_KEY, SIGN_KEY

    if key is None and passphrase_file is not None:
        raise click.UsageError(f"--passphrase-file {passphrase_file}: name the key with --sign")
    if key is not None:  # before a model is compiled that could not be signed
        from ort_lite.trust.private_keys import read_passphrase, read_signer

        read_signer(key, None if passphrase_file is None else read_passphrase(passphrase_file))
    named = {SIGN_KEY: key, PASSPHRASE_KEY: passphrase_file}
    return {entry: str(path) for entry, path in named.items() if path is not None}


def open_signer(key: Path, passphrase_file: Path | None) -> Signer:
    """Open the private key; prompts for its passphrase on a terminal if no file has it.

    Raises:
        InvalidArgument: As `read_signer`.
        CommandError: No passphrase was entered.
    """
    from ort_lite.trust.private_keys import is_encrypted, read_passphrase, read_signer

    if passphrase_file is not None:
        return read_signer(key, read_passphrase(passphrase_file))
    if sys.stdin.isatty() and is_encrypted(key):
        typed: str = click.prompt(f"Passphrase of {key}", hide_input=True, err=True)
        return read_signer(key, typed.encode())
    return read_signer(key, None)
