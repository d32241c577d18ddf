"""Continues tokens with a decoder: `generate.py MODEL 5,17,3 COUNT [TEMPERATURE]`."""

import sys

import numpy as np

import ort_lite as ort

model, prompt, count, *rest = sys.argv[1:]
new = tokens = np.array(prompt.split(","), np.int64)
room, temperature = tokens.size + int(count), float(rest[0]) if rest else 0
session, random = ort.InferenceSession(model), np.random.default_rng()
binding = session.io_binding()
caches = [port for port in session.get_inputs() if port.name.startswith("past_key_values")]
for port in caches:  # with room for all tokens from the start
    binding.bind_cpu_input(port.name, np.zeros((1, port.shape[1], room, port.shape[3]), "f4"))
for port in session.get_outputs():
    binding.bind_output(port.name)
while tokens.size < room:
    binding.bind_cpu_input("input_ids", new[None])
    binding.bind_cpu_input("attention_mask", (np.arange(room) < tokens.size)[None].astype(int))
    session.run_with_iobinding(binding)
    logits, *presents = binding.get_outputs()
    for port, cache in zip(caches, presents, strict=True):
        binding.bind_ortvalue_input(port.name, cache)
    scores = logits.numpy()[0, -1]  # the largest with Gumbel's noise is a sample
    new = (scores + temperature * random.gumbel(size=scores.size)).argmax(keepdims=True)
    tokens = np.append(tokens, new)
print(*tokens, sep=",")
