"""Makes and checks the tables of what OpenVINO computes right; see `__main__`."""
