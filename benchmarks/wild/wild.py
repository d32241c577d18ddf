"""Is any list of providers slower than onnxruntime, on models that nobody tuned for?

`python -m benchmarks.wild.wild [--models NAME|PATH ...] [--packages NAME ...] [--only NAME ...]
[--engines NAME ...] [--site FOLDER] [--turns N] [--json FILE]`. Measured are the models of the
set, and all in the packages of tests/packages, each engine alone in turns. Exits with 1 if a model
misses a limit, or answers otherwise than onnxruntime.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.accuracy.accuracy import difference
from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import PEER_CPU
from benchmarks.harness.process_turns import measure_starts, module_variant, write_inputs
from benchmarks.harness.report import write_json
from benchmarks.harness.samples import ROOT, Sample
from benchmarks.wild.found_models import Finder, Unmeasured, names_of_set
from benchmarks.wild.wild_table import CACHED, SHOWN, misses, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.harness.measure import Measurement, Variant

TURNS = 3


def main() -> int:
    """Measure and print; 1 if a limit is missed."""
    known = names_of_set()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models",
        nargs="+",
        default=(),
        metavar="NAME|PATH",
        help=f"of the set ({', '.join(known)}), files or folders; default: set and packages",
    )
    parser.add_argument(
        "--site",
        type=Path,
        default=ROOT / ".models" / "packages",
        help="folder of the packages; they are installed there (0.6 GB) if need be",
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=SHOWN,
        default=tuple(SHOWN),
        help="columns to measure, in addition to onnxruntime's CPU EP; default: all",
    )
    parser.add_argument(
        "--packages",
        nargs="+",
        default=(),
        metavar="NAME",
        help="only the models that these packages' programs run; default: all packages",
    )
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="NAME", help="of the models found, only these"
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each is timed")
    parser.add_argument("--json", type=Path, help="write all measurements to this file, too")
    arguments = parser.parse_args()
    absent = [text for text in arguments.models if text not in known and not Path(text).exists()]
    if absent:
        parser.error(f"neither a model of the set nor a file: {', '.join(absent)}")
    results: dict[str, dict[str, Measurement]] = {}
    unmeasured: list[Unmeasured] = []
    with TemporaryDirectory(prefix="ort-lite-wild-") as folder:
        for sample in _find(arguments, Path(folder)):
            if arguments.only and sample.name.rpartition("/")[2] not in arguments.only:
                continue
            if isinstance(sample, Unmeasured):
                unmeasured.append(sample)
                continue
            results[sample.name] = measure_model(sample, arguments.turns, arguments.engines)
            if arguments.json is not None:
                write_json(arguments.json, results)  # each time: all models take an hour
    sys.stdout.write(conditions() + tables(results))
    sys.stdout.writelines(f"not measured: {one.name}: {one.reason}\n" for one in unmeasured)
    return 1 if misses(results) else 0


def _find(arguments: argparse.Namespace, folder: Path) -> Iterator[Sample | Unmeasured]:
    finder = Finder(folder)
    models: Sequence[str] = arguments.models
    names = [text for text in models if text in names_of_set()]
    if names or not (models or arguments.packages):
        yield from finder.of_set(names)
    yield from finder.of_files(Path(text) for text in models if text not in names)
    if not models:
        yield from finder.of_packages(arguments.site, arguments.packages)


def measure_model(sample: Sample, turns: int, columns: Sequence[str]) -> dict[str, Measurement]:
    """By variant the first answer, by variant and step what that took; see wild_process.py.

    `facts` of a variant has the `difference` of its outputs from onnxruntime's.
    """
    with TemporaryDirectory(prefix="ort-lite-wild-", dir=sample.feed.parent) as scratch:
        folder = Path(scratch)
        names = [PEER_CPU, *(SHOWN[column] for column in columns)]
        variants = [_variant(name, sample, folder) for name in names]
        measured = measure_starts(variants, turns, sample.name, survive=True)
        expected = _outputs(folder, PEER_CPU)
        for variant in variants:
            if not measured[variant.name].absent and expected is not None:
                apart = _difference(_outputs(folder, variant.name), expected)
                measured[variant.name] = replace(
                    measured[variant.name], facts={"difference": apart}
                )
    return measured


def _variant(name: str, sample: Sample, folder: Path) -> Variant:
    engine = name.removesuffix(CACHED)
    cache = "" if engine == name else str(folder / f"cache of {engine}")
    output = str(folder / f"{name}.npz")
    words = (engine, str(sample.path), cache, output, *write_inputs(sample))
    return module_variant(name, "wild.wild_process", *words)


def _outputs(folder: Path, name: str) -> dict[str, np.ndarray] | None:
    path = folder / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as arrays:
        return {key: arrays[key] for key in arrays.files}


def _difference(outputs: dict[str, np.ndarray] | None, expected: dict[str, np.ndarray]) -> float:
    """The largest of all outputs, relative to the largest magnitude in the output."""
    if outputs is None or outputs.keys() != expected.keys():
        return float("inf")
    return (
        difference([outputs[key] for key in expected], list(expected.values())) if outputs else 0.0
    )


if __name__ == "__main__":
    sys.exit(main())
