"""Threads of a partition that is too little work to be shared among several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from ctx_formats.tensor_size import tensor_bytes
from eps.openvino.placement_costs import costs_of
from ort_lite.ep import estimate_run

if TYPE_CHECKING:
    from eps.openvino.options import OpenVINOOptions
    from ort_lite.ep import Graph

MOST_WORK = 85
"""Estimated microseconds of a run; 0.1 to 0.3 ms by the clock. On two cores one thread takes as
long as two for it, and 0.6 of the processor time: OpenVINO's threads wait for each other between
any two operations. Twice as much work takes 1.3 times as long on one thread."""
MOST_WORK_OF_NODES = 1.9
"""Estimated microseconds of a node in the mean, up to which that holds for any number of nodes, as
in small transformers: 0.55 to 1.1 of the time by the clock, 0.3 to 0.55 of the processor time."""
SHARE_OF_STEPS = 1 / 3
"""Work that threads can share, of the time of a recurrence's steps, up to which one thread is as
fast as two: those wait for each other in every step. On two cores a step of an LSTM, GRU or RNN
takes 0.6 to 1.0 of the time on one thread and 0.5 to 0.85 of the processor time (ADR 53), unless
it is large."""
LARGEST_STEP = 2**20
"""Multiplications and additions of a step up to which that holds, of all rows."""
LARGEST_ROW = 300_000
"""The same of one row: an LSTM of 192 values. The weights of larger ones do not stay in the cache
that one core has for itself, and each of two threads reads half of them: with a GRU of 400 values,
1.8 MB, one thread takes 2.3 times as long as two."""
LARGE_WEIGHTS = 1 << 17
"""Bytes of weights of a node from which on threads have enough to do between two waits."""
CORE_CACHE = 1_900_000
"""Bytes of such weights that stay in the second-level cache of one core from run to run."""
READ_RATE = 20_000
"""Bytes beyond that cache that one thread reads in a microsecond. Eight products of 256 by 256 on
one row take 0.7 of the time on two threads, two of 512 by 512 0.4 (ADR 53)."""
FREE_ROWS = 4
"""Rows that a step of free shapes is taken to have, where one is the estimate."""


def pays_one_thread(options: OpenVINOOptions, graph: Graph) -> bool:
    """Whether a partition runs on one thread, as nobody chose a number.

    The work of free shapes is anybody's guess, but not which part of it are steps of recurrences.
    """
    if not options.leaves_threads_open:
        return False
    loops = [index for index in range(len(graph.nodes)) if graph.bodies(index)]
    if loops:
        return _has_small_iterations(graph, loops)
    most = max(MOST_WORK, MOST_WORK_OF_NODES * len(graph.nodes))
    work = estimate_run(graph, costs_of("CPU"), most)
    if work is None:
        return False
    if not work.free and work.shared + work.sequential + _reading(graph) <= most:
        return True
    largest = work.largest_step * (FREE_ROWS if work.free else 1)
    is_stepping = work.shared - work.calls <= SHARE_OF_STEPS * work.sequential
    return is_stepping and 0 < largest <= LARGEST_STEP and work.largest_row <= LARGEST_ROW


def _has_small_iterations(graph: Graph, loops: list[int]) -> bool:
    """Whether neither an iteration of a Loop nor the rest is enough work for several threads.

    On two cores 500 iterations of three to four small nodes take 0.6 to 0.8 of the time on one.
    """
    rest = [index for index in range(len(graph.nodes)) if not graph.bodies(index)]
    parts = [body for index in loops for body in graph.bodies(index).values()]
    parts += [graph.extract(rest, "rest")] if rest else []
    for part in parts:
        work = estimate_run(part, costs_of("CPU"), MOST_WORK)
        if work is None or work.free or work.shared + work.sequential > MOST_WORK:
            return False
    return True


def _reading(graph: Graph) -> float:
    """Microseconds in which one thread reads large weights that its core's cache does not keep."""
    names = {
        name for node in graph.nodes if node.op_type != "Gather" for name in node.inputs if name
    }
    constants = [tensor for name in names if (tensor := graph.constant(name)) is not None]
    sizes = [
        tensor_bytes(tensor.data_type, tensor.dims)
        for tensor in constants
        if tensor.data_type != DataType.STRING
    ]
    total = sum(size for size in sizes if size >= LARGE_WEIGHTS)
    return total / READ_RATE if total > CORE_CACHE else 0
