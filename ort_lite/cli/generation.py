"""`ort-lite bench --generate`: times a decoder's first token and the tokens after it.

A decoder has the ports that onnxruntime-genai's model builder writes: input_ids, attention_mask and
past_key_values.N.key/value to logits and present.N.key/value. Its caches have room for the prompt
and all new tokens from the start, and are handed from one run to the next through an IOBinding. On
a device with memory of its own they stay there: each present is bound to its past's memory.
"""

from __future__ import annotations

from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import print_line, progress
from ort_lite.cli.peers import open_peer
from ort_lite.cli.session_choice import open_session
from ort_lite.cli.timings import Timing, show_timings, summarize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.session import InferenceSession

    Array = np.ndarray[Any, np.dtype[Any]]

IDS, MASK, POSITIONS, PAST, LOGITS = (
    *("input_ids", "attention_mask", "position_ids", "past_key_values."),
    "logits",
)
HOST = "cpu", 0
FIRST, LATER = "first token", "token"
_CACHE_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class Decoder:
    """A session of a decoder, with the names of its ports checked."""

    def __init__(
        self,
        session: Any,  # noqa: ANN401 - a session of either library
        *,
        shares_caches: bool = False,
        device: tuple[str, int] = HOST,
    ) -> None:
        """Look at the ports.

        Args:
            session: Of ort_lite or of onnxruntime.
            shares_caches: Whether an output is written into the input that it continues.
            device: Name and number of the device that caches are on.

        Raises:
            CommandError: It lacks a port of a decoder, or has another.
        """
        self._session, self._shares, self._device = session, shares_caches, device
        self._values = import_module(type(session).__module__.partition(".")[0]).OrtValue
        ports = {port.name: port for port in session.get_inputs()}
        outputs = [port.name for port in session.get_outputs()]
        self._caches = {name: port for name, port in ports.items() if name.startswith(PAST)}
        self._presents = [name for name in outputs if name != LOGITS]
        known = {IDS, MASK, POSITIONS, *self._caches}
        lacking = [name for name in (IDS, MASK) if name not in ports]
        lacking += [LOGITS] if LOGITS not in outputs else []
        if lacking or ports.keys() - known or len(self._presents) != len(self._caches):
            raise CommandError(
                ExitCode.USAGE,
                f"not a decoder: inputs {', '.join(ports)}; outputs {', '.join(outputs)}",
                hint=f"--generate needs {IDS}, {MASK} and {PAST}N.key/value to {LOGITS} and "
                "present.N.key/value",
            )
        self._has_positions = POSITIONS in ports
        length = ports[IDS].shape[1]
        self._step = length if isinstance(length, int) else 0
        self._ports = ports

    def generate(self, prompt: Array, count: int, room: int) -> tuple[Array, list[float]]:
        """Continue a prompt greedily.

        Args:
            prompt: Tokens, int64, one dimension.
            count: New tokens, at least 1.
            room: Positions of the caches, where the model does not fix them.

        Returns:
            The new tokens, and the seconds that each took; the first one's have the prompt's.

        Raises:
            CommandError: The model has fixed lengths that the prompt does not fit.
        """
        room = self._room(room)
        binding = self._session.io_binding()
        self._bind_empty_caches(binding, room)
        tokens, seconds, past, new = [], [], 0, prompt
        for _ in range(count):
            began = perf_counter()
            for part in self._parts(new):
                logits = self._run(binding, part, past, room)
                past += part.size
            new = np.array([logits[0, -1].argmax()], np.int64)
            seconds.append(perf_counter() - began)
            tokens.append(int(new[0]))
        return np.array(tokens, np.int64), seconds

    def _room(self, total: int) -> int:
        """Positions of the caches: as many as the model fixes, or else `total`."""
        sizes = {self._ports[MASK].shape[1], *(port.shape[2] for port in self._caches.values())}
        fixed = [size for size in sizes if isinstance(size, int)]
        if fixed and min(fixed) < total:
            raise CommandError(
                ExitCode.USAGE,
                f"{total} tokens do not fit the model's caches of {min(fixed)}",
                hint="choose a smaller --prompt or --generate",
            )
        return min(fixed, default=total)

    def _parts(self, new: Array) -> list[Array]:
        """The tokens of each run, of the length that the model fixes."""
        step = self._step or new.size
        if new.size % step:
            raise CommandError(
                ExitCode.USAGE,
                f"{new.size} tokens, which is not a multiple of the model's fixed length of {step}",
                hint="use a model for runs of one token, or of free length",
            )
        return [new[at : at + step] for at in range(0, new.size, step)]

    def _bind_empty_caches(self, binding: Any, room: int) -> None:  # noqa: ANN401 - of either library
        for (name, port), present in zip(self._caches.items(), self._presents, strict=True):
            shape = (1, port.shape[1], room, port.shape[3])
            zeros = np.zeros(shape, _CACHE_TYPES[port.type])
            cache = self._values.ortvalue_from_numpy(zeros, *self._device)
            binding.bind_ortvalue_input(name, cache)
            if self._shares:
                binding.bind_ortvalue_output(present, cache)
            else:
                binding.bind_output(present)
        binding.bind_output(LOGITS)

    def _run(self, binding: Any, tokens: Array, past: int, room: int) -> Array:  # noqa: ANN401 - of either library
        """Logits [1, positions, vocabulary]; the caches are the next run's."""
        end = past + tokens.size
        mask = (np.arange(room) < end).astype(np.int64)
        binding.bind_cpu_input(IDS, tokens.reshape(1, -1))
        binding.bind_cpu_input(MASK, mask.reshape(1, -1))
        if self._has_positions:
            binding.bind_cpu_input(POSITIONS, np.arange(past, end).reshape(1, -1))
        self._session.run_with_iobinding(binding)
        *presents, logits = binding.get_outputs()
        if not self._shares:
            for name, cache in zip(self._caches, presents, strict=True):
                binding.bind_ortvalue_input(name, cache)
        result: Array = logits.numpy()
        return result


def bench_generation(
    model: Path,
    choice: SessionChoice,
    lengths: tuple[int, int],
    rounds: int,
    *,
    against: str | None,
    as_json: bool,
) -> ExitCode:
    """Generate with MODEL, and in turns with a peer.

    Args:
        model: A decoder.
        choice: The session to create.
        lengths: Tokens of the prompt, and new ones.
        rounds: Generations of each.
        against: The peer, or None.
        as_json: Print JSON.
    """
    prompt, room = np.random.default_rng(0).integers(0, 256, lengths[0]), sum(lengths)
    with open_session(model, choice) as session:
        decoders = {"": _open_decoder(session)}
        if against is not None:
            peer = open_peer(against, model)
            decoders[f", {against}"] = Decoder(peer, shares_caches=against == "onnxruntime")
        times: dict[str, list[float]] = {}
        answers: dict[str, Array] = {}
        with progress(f"generating with {model.name}"):
            for name, decoder in decoders.items():
                decoder.generate(prompt, 2, room)  # programs for both lengths are compiled once
                times |= {f"{FIRST}{name}": [], f"{LATER}{name}": []}
            for _ in range(rounds):
                for name, decoder in decoders.items():
                    answers[name], seconds = decoder.generate(prompt, lengths[1], room)
                    times[f"{FIRST}{name}"].append(seconds[0])
                    times[f"{LATER}{name}"] += seconds[1:]
        report = session.explain()
    timings = [summarize(phase, seconds) for phase, seconds in times.items() if seconds]
    show_timings(model, report, timings, as_json=as_json)
    if not as_json:
        _show_rates(timings, answers)
    return ExitCode.OK


def _open_decoder(session: InferenceSession) -> Decoder:
    """With caches on the device that runs the whole model, if it has memory of its own."""
    memories = session.device_memories()
    if len(memories) != 1 or len(session.explain().partitions) != 1:
        return Decoder(session)
    place = memories[0].place
    return Decoder(session, shares_caches=True, device=(place.name, place.device_id))


def _show_rates(timings: Sequence[Timing], answers: dict[str, Array]) -> None:
    rates = {t.phase.removeprefix(LATER): 1 / t.median for t in timings if t.phase[:5] == LATER}
    for name, rate in rates.items():
        print_line(f"{rate:.1f} tokens per second{name}")
    first, *others = answers.values()
    for other in others:
        equal = int(np.argmin(np.append(first == other, False)))
        print_line(f"{equal} of {first.size} tokens agree from the start")
