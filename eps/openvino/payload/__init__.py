"""OpenVINO blobs as payloads: what they record, what they require, whether they fit."""
