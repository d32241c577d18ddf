"""Threads of a partition that is too little work to be shared among several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.placement_costs import costs_of
from ort_lite.ep import estimate_run

if TYPE_CHECKING:
    from eps.openvino.options import OpenVINOOptions
    from ort_lite.ep import Graph

THREADS_KEY = "INFERENCE_NUM_THREADS"
PINNING_KEY = "ENABLE_CPU_PINNING"
"""Off for one thread: OpenVINO would bind the caller's to the same core in every session and
process, for the time of a run, and a run waits there while other cores are idle."""
MOST_WORK = 85
"""Estimated microseconds of a run; 0.1 to 0.3 ms by the clock. On two cores one thread takes as
long as two for it, and 0.6 of the processor time: OpenVINO's threads wait for each other between
any two operations. Twice as much work takes 1.3 times as long on one thread."""


def pays_one_thread(options: OpenVINOOptions, graph: Graph) -> bool:
    """Whether a partition runs on one thread, as nobody chose a number.

    Only where all shapes are known: the work of a free one is anybody's guess, and on one thread
    OpenVINO 2026.4.1 goes on where the inference of a free shape fails, and reads foreign memory.
    """
    if options.device != "CPU" or options.num_of_threads is not None:
        return False
    if THREADS_KEY in options.load_config or "NUM_STREAMS" in options.load_config:
        return False
    if options.num_streams is not None:
        return False
    work = estimate_run(graph, costs_of("CPU"))
    return work is not None and work <= MOST_WORK
