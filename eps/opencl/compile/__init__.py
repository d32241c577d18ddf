"""From a partition to OpenCL C: support, kernel graph, layout, memory plan, code."""
