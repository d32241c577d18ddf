"""Continues tokens with a decoder: `generate.py MODEL 5,17,3 COUNT [TEMPERATURE]`."""

import sys

import numpy as np

import ort_lite as ort

model, prompt, count, *rest = sys.argv[1:]
new = tokens = np.array(prompt.split(","), np.int64)
room, temperature = tokens.size + int(count), float(rest[0]) if rest else 0
session, random = ort.InferenceSession(model), np.random.default_rng()
binding = session.io_binding()
place = "opencl" if session.get_providers()[0].startswith("OpenCL") else "cpu"
for port in session.get_inputs()[2:]:  # caches, with room for all tokens from the start
    shape = np.array([1, port.shape[1], room, port.shape[3]], np.int64).tolist()
    kind = np.float16 if port.type == "tensor(float16)" else np.float32
    cache = ort.OrtValue.ortvalue_from_shape_and_type(shape, kind, place, 0)
    binding.bind_ortvalue_input(port.name, cache)
    binding.bind_ortvalue_output(port.name.replace("past_key_values", "present"), cache)
binding.bind_output("logits")
while tokens.size < room:
    binding.bind_cpu_input("input_ids", new[None])
    binding.bind_cpu_input("attention_mask", (np.arange(room) < tokens.size)[None].astype(int))
    session.run_with_iobinding(binding)
    scores = binding.get_outputs()[-1].numpy()[0, -1]
    # The largest with Gumbel's noise is a sample.
    new = (scores + temperature * random.gumbel(size=scores.size)).argmax(keepdims=True)
    tokens = np.append(tokens, new)
print(*tokens, sep=",")
