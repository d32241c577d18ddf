"""Opens a plain model twice with the model cache: `model_cache.py MODEL`."""

import sys

import ort_lite as ort

options = ort.SessionOptions()
options.add_session_config_entry("session.ep_context_cache", "1")
options.add_session_config_entry("session.ep_context_cache_dir", "cache")
for _ in range(2):
    session = ort.InferenceSession(sys.argv[1], options, providers=["OpenVINOExecutionProvider"])
    report = session.load_report()
    print(report.cache.state, report.cache.reason)
