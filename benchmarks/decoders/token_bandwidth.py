"""How far is a token of a decoder from the time that reading its weights once takes?

    python -m benchmarks.decoders.token_bandwidth FOLDER/model.onnx

A token reads every weight. Turn by turn, threads on all cores read as many bytes as the file of
weights has, and each engine runs one token after half a cache. The share is the reading's time over
the token's, by the clock and in processor time; only the latter means something on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

import ort_lite as ort
from benchmarks.harness.conditions import conditions

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, np.dtype[Any]]

ENGINES = {
    "opencl": "OpenCLExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "onnxruntime": "",
}
CACHE = "past_key_values"
TARGET = 0.75


def main() -> int:
    """Measure and print; 1 if an engine of ours is below the target by the clock."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="as make_decoder.py writes it")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--room", type=int, default=512, help="positions of caches (%(default)s)")
    parser.add_argument("--turns", type=int, default=20)
    arguments = parser.parse_args()
    size = Path(f"{arguments.model}.data").stat().st_size
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        goes = {"reading": prepare_reading(pool, size)}
        for engine in arguments.engines:
            goes[engine] = prepare_token(engine, arguments.model, arguments.room)
        seconds = run_in_turns(goes, arguments.turns)
    print(conditions(), end="")
    print(f"{size / 1e6:.0f} MB of weights, a cache of {arguments.room} positions")
    print(f"{'':<12}{'ms':>8}{'CPU ms':>8}{'GB/s':>8}{'share':>8}{'of CPU':>8}")
    shares = {}
    for name, turns in seconds.items():
        clock, processor = (median(turn[i] for turn in turns) for i in (0, 1))
        pairs = list(zip(seconds["reading"], turns, strict=True))
        share, own = (median(read[i] / turn[i] for read, turn in pairs) for i in (0, 1))
        shares[name] = share
        numbers = f"{clock * 1e3:>8.1f}{processor * 1e3:>8.1f}{size / clock / 1e9:>8.1f}"
        print(f"{name:<12}{numbers}{share:>8.2f}{own:>8.2f}")
    return int(any(share < TARGET for name, share in shares.items() if ENGINES.get(name)))


def run_in_turns(
    goes: dict[str, Callable[[], object]], turns: int
) -> dict[str, list[tuple[float, float]]]:
    """Seconds by the clock and of the process, of each turn of each go; one is not counted."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in goes}
    for turn in range(turns + 1):
        for name, go in goes.items():
            began, used = time.perf_counter(), time.process_time()
            go()
            if turn:
                seconds[name].append((time.perf_counter() - began, time.process_time() - used))
    return seconds


def prepare_reading(pool: ThreadPoolExecutor, size: int) -> Callable[[], object]:
    """A function that reads `size` bytes, a part on each thread."""
    parts = np.array_split(np.ones(size // 4, np.int32), os.cpu_count() or 1)
    return lambda: list(pool.map(np.max, parts))


def prepare_token(engine: str, model: Path, room: int) -> Callable[[], object]:
    """A function that runs one token; its caches are bound, and stay where they are."""
    sizes = {"batch_size": 1, "sequence_length": 1}
    sizes |= dict.fromkeys(("past_sequence_length", "total_sequence_length"), room)
    library: Any = ort if ENGINES[engine] else onnxruntime
    options = library.SessionOptions()
    for name, value in sizes.items():
        options.add_free_dimension_override_by_name(name, value)
    if not ENGINES[engine]:  # its threads would spin on into the next go's processor time
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    provider = ENGINES[engine] or "CPUExecutionProvider"
    session = library.InferenceSession(model, options, providers=[provider])
    binding = session.io_binding()
    place = "opencl" if engine == "opencl" else "cpu"
    for port in session.get_inputs():
        if not port.name.startswith(CACHE):
            continue
        empty = np.zeros([1, port.shape[1], room, port.shape[3]], np.float32)
        cache = library.OrtValue.ortvalue_from_numpy(empty, place, 0)
        binding.bind_ortvalue_input(port.name, cache)
        binding.bind_ortvalue_output(port.name.replace(CACHE, "present"), cache)
    binding.bind_output("logits")

    def run_token() -> object:
        binding.bind_cpu_input("input_ids", np.array([[5]]))
        mask = (np.arange(room) <= room // 2)[None].astype(np.int64)
        binding.bind_cpu_input("attention_mask", mask)
        session.run_with_iobinding(binding)
        return binding.get_outputs()[-1].numpy()

    return run_token


if __name__ == "__main__":
    raise SystemExit(main())
