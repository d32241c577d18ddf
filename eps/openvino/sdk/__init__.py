"""OpenVINO's two bindings behind one protocol: libraries, calls, ports and errors."""
