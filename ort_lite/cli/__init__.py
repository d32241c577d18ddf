"""The command line `ort-lite`; needs the extra `cli` (click and rich)."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDED = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code (see ort_lite.cli.exit_codes)."""
    try:
        from ort_lite.cli.interrupts import answer_interrupts

        answer_interrupts()
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:  # while modules are imported
        code = _report_interrupt()
    except RuntimeError as exc:
        # As Python 3.11 wraps an interrupt while a class is created.
        if not isinstance(exc.__cause__, KeyboardInterrupt):
            raise
        code = _report_interrupt()
    sys.exit(code)


def _report_interrupt() -> int:
    sys.stderr.write("error: interrupted.\n")
    return 130


def _run(arguments: Sequence[str]) -> int:
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        sys.stderr.write(
            f'error: ort-lite needs {" and ".join(missing)}; pip install "ort-lite[cli]"\n'
        )
        return 2
    from ort_lite.cli.app import run_command

    return run_command(arguments)


def share_main() -> None:
    """`ep_weight_sharing_ctx_gen`, by its old name, is `ort-lite share`."""
    main(["share", *sys.argv[1:]])
