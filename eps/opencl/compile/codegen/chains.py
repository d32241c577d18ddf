"""One launch for many kernels that follow each other, on Intel's CPU runtime.

The launch has a few work-items, and each goes through all calls of the chain: it takes one item of
a call after the other from a counter, and goes on to the next call once all items of this one are
done. An item that has not begun holds nothing that others wait for, so that a chain ends however
few of them the driver runs side by side (docs/adr/0059-one-launch-for-many-kernels.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.codegen.kernel import ITEM
from eps.opencl.program_spec import CHAIN_ARGUMENTS, CHAIN_COUNTERS, chain_row_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.views import Storage

CHAIN_ITEM = "ol_item"
"""C name of the index of a work-item of a call in functions of programs with chains."""
FEWEST_SAVED = 8
"""Launches that chains have to save, besides half of all."""
WORK_OF_A_LAUNCH = 16 << 20
"""Operations of a program for each launch that chains save, at most. A launch is less than a
hundredth of more than that, and large programs are built faster in parts, which have no chains."""
MOST_WORK = 4 << 20
"""Operations of one item of a short kernel; others wait for it no longer than about 0.3 ms."""
MOST_BYTES = 1 << 20
"""Bytes of one item of a short kernel, where its operations are not counted."""
FEW_ROWS = ("cache_", "weight_rows_")
"""Labels of kernels that touch a few rows of their operands."""
MOST_WAITS = 1 << 13
"""Turns of a loop with a pause, 0.1 to 0.4 ms. After so many, an item leaves the rest to others."""


def find_chains(kernels: Sequence[Kernel]) -> tuple[tuple[int, int], ...]:
    """Ranges of short kernels that follow each other; none where they save few launches."""
    if max((len(k.operands) + k.checks for k in kernels), default=0) < CHAIN_ARGUMENTS:
        return ()
    chains, begin = [], 0
    for at, kernel in enumerate((*kernels, None)):
        if kernel is not None and _is_short(kernel):
            continue
        if at - begin > 1:
            chains.append((begin, at))
        begin = at + 1
    saved = sum(end - begin - 1 for begin, end in chains)
    pays = sum(kernel.work for kernel in kernels) <= saved * WORK_OF_A_LAUNCH
    return tuple(chains) if pays and saved >= max(FEWEST_SAVED, len(kernels) // 2) else ()


def _is_short(kernel: Kernel) -> bool:
    """Whether waiting for one of its items takes little more than a launch does."""
    if kernel.group > 1 or kernel.include:
        return False
    if kernel.work:
        return kernel.work <= MOST_WORK * kernel.tasks
    few_rows = kernel.label in FEW_ROWS
    return few_rows or sum(map(_nbytes, kernel.operands)) <= MOST_BYTES * kernel.tasks


def _nbytes(buffer: Storage) -> int:
    return buffer.size * int(np.dtype(buffer.dtype).itemsize)


def name_item(function: str) -> str:
    """A function's text from its name on, with the index of its item as the first parameter."""
    name, brace, rest = function.partition("(\n")
    return f"{name}{brace}    const int {CHAIN_ITEM},\n{rest.replace(ITEM, CHAIN_ITEM)}"


def emit_chain_entry(
    head: str, function: str, most: int, functions: int, chains: int, cases: Sequence[str]
) -> str:
    """The entry of a program with chains, and the functions that it needs.

    Its first argument is the number of a function, whose arguments follow; or `functions` plus a
    slot of the table of addresses, which that many addresses from this slot on are written to; or
    -1 minus the number of a chain, with the table of addresses, that of calls, and the counters.

    Args:
        head: Attributes of the entry, up to its list of parameters.
        function: Attributes and type of a function.
        most: Pointers that the entry has.
        functions: How many there are.
        chains: How many there are.
        cases: The switch over functions, with `ol_item` and pointers `a0`...
    """
    pointers = [f"a{i}" for i in range(most)]
    declared = "".join(f", __global char* {name}" for name in pointers)
    row, counters = chain_row_size(most), CHAIN_COUNTERS
    loaded = "".join(f", (__global char*)slots[row[{i + 2}]]" for i in range(most))
    stored = "".join(
        f" if (a0 != {name}) slots[slot + {i}] = (ulong){name};"
        for i, name in enumerate(pointers[1:])
    )
    return f"""{function} ol_call(const int number, const int {CHAIN_ITEM}{declared}) {{
  switch (number) {{
{chr(10).join(cases)}
  }}
}}

{function} ol_run(
    const int chain, __global const ulong* slots, __global const int* rows,
    volatile __global int* counters)
{{
  const int begin = rows[2 * chain], end = rows[2 * chain + 1];
  for (int step = begin; step < end; ++step) {{
    __global const int* row = rows + {2 * chains} + step * {row};
    volatile __global int* taken = counters + step * {counters};
    volatile __global int* done = taken + 1;
    const int items = row[1];
    while (*done < items) {{
      const int item = atomic_inc(taken);
      if (item >= items) break;
      ol_call(row[0], item{loaded});
      mem_fence(CLK_GLOBAL_MEM_FENCE);
      atomic_inc(done);
    }}
    for (int waits = 0; *done < items; ++waits) {{
      if (waits == {MOST_WAITS}) return;
      ol_pause();
    }}
    mem_fence(CLK_GLOBAL_MEM_FENCE);
  }}
}}

{head}(const int number{declared}) {{
  if (number >= {functions}) {{
    __global ulong* slots = (__global ulong*)a0;
    const int slot = number - {functions};
   {stored}
  }} else if (number >= 0) {{
    ol_call(number, {ITEM}{"".join(f", {name}" for name in pointers)});
  }} else {{
    ol_run(-1 - number, (__global const ulong*)a0, (__global const int*)a1,
           (volatile __global int*)a2);
  }}
}}
"""


PAUSE = 'void ol_pause(void) __asm__("llvm.x86.sse2.pause");'
NO_PAUSE = "void ol_pause(void) {}"
"""Of a processor that is not x86. The instruction leaves more of a core to its other thread."""
