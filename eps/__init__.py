"""The execution providers that come with ort_lite, one package each."""
