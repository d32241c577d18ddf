"""An adapter's file from arrays in an .npz: `python -m` this module."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence


def get_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Options of the command line, with onnxruntime's names."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--npz_file_path", required=True)
    parser.add_argument("--output_file_path", required=True)
    parser.add_argument("--adapter_version", type=int, required=True)
    parser.add_argument("--model_version", type=int, required=True)
    return parser.parse_args(argv)


def export_lora_parameters(
    npz_file_path: str | os.PathLike[str],
    adapter_version: int,
    model_version: int,
    output_file_path: str | os.PathLike[str],
) -> None:
    """Write the arrays of an .npz as the parameters of an adapter.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: The file is not a .npz, or holds pickled objects.
        BindingError: An array of a type or shape that adapters do not have.
    """
    import numpy as np  # noqa: PLC0415 - lazy: reload

    from ort_lite.execution.adapters import AdapterFormat  # noqa: PLC0415 - lazy: rare
    from ort_lite.execution.values import OrtValue  # noqa: PLC0415 - lazy: rare

    content = AdapterFormat()
    content.set_adapter_version(adapter_version)
    content.set_model_version(model_version)
    with np.load(Path(npz_file_path), allow_pickle=False) as arrays:
        content.set_parameters(
            {name: OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
        )
    content.export_adapter(output_file_path)


def main(argv: Sequence[str] | None = None) -> int:
    """Convert one file; 0."""
    args = get_args(argv)
    export_lora_parameters(
        args.npz_file_path, args.adapter_version, args.model_version, args.output_file_path
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
