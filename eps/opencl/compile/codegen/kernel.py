"""A kernel's text and operands, and the pieces that every generator writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.expression import Arg, Expr, ExpressionWriter, arguments, vector_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from eps.opencl.compile.ir import Epilogue
    from eps.opencl.compile.tilings import Problem
    from eps.opencl.compile.views import Loop, Storage, View


ITEM = "get_global_id(0)"
"""C text of the index of a work-item."""
UNNAMED = "k"
"""Label of a kernel that is named after its operation."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel call.

    Attributes:
        body: OpenCL C of the body; operand i is the pointer `p<i>`.
        operands: Buffers in the order of the parameters; the last are written, others read.
        tasks: Global size, a multiple of `group`.
        group: Local size.
        checks: Whether a last parameter `int* wrong` follows, set where an index is out of range.
        work: Floating-point operations, for reports; 0 if not counted.
        problem: What a contraction's tiling was chosen for; None of other kernels.
        written: How many operands are written.
        label: What its name in the program begins with.
        include: OpenCL C of the user's that it calls; "" for none.
        in_place: (read operand, written operand) pairs of indices whose memory may be the same:
            no work-item reads what another one writes, in whichever order they run.
        joins: Whether it may be part of a launch with other kernels of its label.
        division: Equal for kernels whose items write the same elements of results of one shape,
            each element by one item; () where that is not known.
        elementwise: Indices of operands that an item reads only at the elements that it writes.
        parts: Kernels that are its body, if it is several.
    """

    body: str
    operands: tuple[Storage, ...]
    tasks: int
    group: int = 1
    checks: bool = False
    work: int = 0
    problem: Problem | None = None
    written: int = 1
    label: str = UNNAMED
    include: str = ""
    in_place: frozenset[tuple[int, int]] = frozenset()
    joins: bool = False
    division: tuple[int, ...] = ()
    elementwise: frozenset[int] = frozenset()
    parts: tuple[KernelPart, ...] = ()

    @property
    def read(self) -> tuple[Storage, ...]:
        """Operands that are read."""
        return self.operands[: len(self.operands) - self.written]

    @property
    def written_operands(self) -> tuple[Storage, ...]:
        """Operands that are written."""
        return self.operands[len(self.operands) - self.written :]

    def parameters(self) -> list[str]:
        """Type and name of each parameter."""
        read = len(self.operands) - self.written
        texts = [
            f"__global {'const ' if i < read else ''}{pointee_type(buffer)}* p{i}"
            for i, buffer in enumerate(self.operands)
        ]
        return [*texts, *(["__global int* wrong"] if self.checks else [])]


@dataclass(frozen=True, slots=True)
class KernelPart:
    """A kernel that runs on some of the work-items of a joined one.

    Attributes:
        kernel: Its body has `first` as item 0.
        first: The first of its items.
        operands: For each of its operands the index of it in those of the joined kernel.
    """

    kernel: Kernel
    first: int
    operands: tuple[int, ...]


class Code:
    """Lines of C with indentation."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 1

    def add(self, *lines: str) -> None:
        """Append lines at the current indentation."""
        self._lines += [f"{'  ' * self._depth}{line}" for line in lines]

    def open(self, head: str) -> None:
        """Begin a block: `head {`."""
        self.add(f"{head} {{" if head else "{")
        self._depth += 1

    def close(self, count: int = 1) -> None:
        """End the innermost `count` blocks."""
        for _ in range(count):
            self._depth -= 1
            self.add("}")

    @property
    def depth(self) -> int:
        """Blocks that are open."""
        return self._depth

    def text(self) -> str:
        """The lines as the body of a kernel."""
        return "\n".join(self._lines)


def offset_of(terms: Iterable[tuple[str, int]], constant: int = 0) -> str:
    """The C text of sum(name * stride) + constant, without terms that are zero."""
    parts = [scale_term(name, stride) for name, stride in terms if stride and name != "0"]
    if constant or not parts:
        parts.append(str(constant))
    return " + ".join(parts)


def scale_term(name: str, stride: int) -> str:
    """The C text of name * stride; "0" for either being zero."""
    if not stride or name == "0":
        return "0"
    return name if stride == 1 else f"{name} * {stride}"


def decode(code: Code, name: str, sizes: Sequence[int], prefix: str) -> list[str]:
    """Split index `name` into one index for each size, innermost last; their C names."""
    names = []
    rest = name
    for i in reversed(range(len(sizes))):
        if sizes[i] == 1:
            names.append("0")
            continue
        outermost = all(n == 1 for n in sizes[:i])
        code.add(f"const int {prefix}{i} = {rest}{'' if outermost else f' % {sizes[i]}'};")
        names.append(f"{prefix}{i}")
        rest = f"({rest}) / {sizes[i]}"
    return list(reversed(names))


def floats(vector: int) -> str:
    """Type of `vector` floats, or of one."""
    return f"float{vector}" if vector > 1 else "float"


def pointee_type(buffer: Storage) -> str:
    """Element type of a pointer; halves are for `load_packed` and `store_packed` only."""
    return "half" if buffer.dtype == "float16" else C_TYPES[buffer.dtype]


def load_packed(buffer: Storage, pointer: str, index: str, vector: int) -> str:
    """Neighbours in a buffer of floats or of halves, as floats."""
    if buffer.dtype != "float16":
        return load(pointer, index, 1, vector)
    return f"vload_half{vector if vector > 1 else ''}(0, {pointer} + {index})"


def load(pointer: str, index: str, stride: int, vector: int, dtype: str = "float32") -> str:
    """A vector of neighbours, of one element, or of elements `stride` apart."""
    if vector == 1:
        return f"{pointer}[{index}]"
    kind = vector_type(dtype, vector)
    if stride == 0:
        return f"({kind})({pointer}[{index}])"
    if stride == 1:
        return f"vload{vector}(0, {pointer} + {index})"
    items = ", ".join(f"{pointer}[{index} + {i * stride}]" for i in range(vector))
    return f"({kind})({items})"


def store(pointer: str, index: str, stride: int, vector: int, value: str) -> list[str]:
    """Statements that store a vector."""
    if vector == 1:
        return [f"{pointer}[{index}] = {value};"]
    if stride == 1:
        return [f"vstore{vector}({value}, 0, {pointer} + {index});"]
    lanes = "0123456789ABCDEF"
    return [f"{pointer}[{index} + {i * stride}] = {value}.s{lanes[i]};" for i in range(vector)]


def store_packed(buffer: Storage, pointer: str, index: str, vector: int, value: str) -> list[str]:
    """Statements that store floats to neighbours in a buffer of floats, or of halves."""
    if buffer.dtype != "float16":
        return store(pointer, index, 1, vector, value)
    lanes = str(vector) if vector > 1 else ""
    return [f"vstore_half{lanes}_rte({value}, 0, {pointer} + {index});"]


@dataclass(frozen=True, slots=True)
class Finish:
    """An epilogue with the places of its operands.

    Attributes:
        views: Of the extra operands, broadcast to the output's shape.
        first: Parameter number of the first of them.
    """

    expr: Expr
    views: tuple[View, ...]
    first: int

    def write(
        self, code: Code, value: str, loads: Mapping[int, str], vector: int, prefix: str
    ) -> str:
        """The C name of the finished value; `loads` has the text of each operand read."""
        names = {0: value}
        for i in sorted(arguments(self.expr) - {0}):
            text = loads[i]
            if text.isidentifier():
                names[i] = text
                continue
            names[i] = f"{prefix}e{i}"
            kind = vector_type(self.views[i - 1].buffer.dtype, vector)
            code.add(f"const {kind} {names[i]} = {text};")
        writer = ExpressionWriter(names, vector=vector, prefix=f"{prefix}t")
        result = writer.write(self.expr)
        code.add(*writer.lines)
        return result


def finish_of(
    epilogue: Epilogue | None, views: Sequence[View], shape: Sequence[int], first: int
) -> Finish:
    """The epilogue of an operation whose parameters before it number `first`."""
    if epilogue is None:
        return Finish(Arg(0, "float32"), (), first)
    extra = tuple(v.broadcast(shape) for v in views[epilogue.first :])
    return Finish(epilogue.expr, extra, first)


def loop_nest(code: Code, loops: Sequence[Loop], prefix: str, *, pragma: str = "") -> list[str]:
    """Open one `for` for each loop; the names of the counters."""
    names = []
    for i, loop in enumerate(loops):
        name = f"{prefix}{i}"
        if pragma:
            code.add(pragma)
        code.open(f"for (int {name} = 0; {name} < {loop.size}; ++{name})")
        names.append(name)
    return names


def share(total: int, target: int) -> tuple[int, int]:
    """(tasks, units in each) for `total` units in at most `target` tasks."""
    each = max(1, -(-total // max(target, 1)))
    return -(-total // each), each


ALMOST = 1.02
"""Times the shortest that cores may need for one more task of each to be worth it."""


def share_evenly(total: int, most: int, cores: int) -> tuple[int, int]:
    """As `share`, in a number of tasks of one size that as many cores end at about the same time.

    Of several such numbers, the largest: other work may delay a core. At least two tasks for each
    core, if there may be so many.
    """
    smallest, fewest = share(total, most)[1], min(max(most, 1), 2 * cores)
    numbers = {each: -(-total // each) for each in range(smallest, max(1, total) + 1)}
    sizes = [each for each, tasks in numbers.items() if tasks >= fewest] or [smallest]
    needed = {each: share(numbers[each], cores)[1] * each for each in sizes}
    limit = min(needed.values()) * ALMOST
    each = next(each for each in sizes if needed[each] <= limit)
    return numbers[each], each
