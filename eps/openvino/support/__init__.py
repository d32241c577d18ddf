"""Which nodes OpenVINO computes right: tables of operators and their conditions."""
