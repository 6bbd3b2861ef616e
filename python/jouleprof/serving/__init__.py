"""Joules per request of an inference server with continuous batching (docs/serving.md).

    jouleprof run --serving -- python server.py
    jouleprof report server.jprof --by request

jouleprof.serving.transformers and jouleprof.serving.vllm record the steps of those engines;
Recorder records those of any other."""

from ._recorder import Listener, Recorder, Request, Share
from ._requests import ProvisionalEnergies, RequestEnergy, RequestMetrics, follow_requests, read_requests
from ._spans import RequestSpans

__all__ = ["Listener", "ProvisionalEnergies", "Recorder", "Request", "RequestEnergy", "RequestMetrics", "RequestSpans",
           "Share", "follow_requests", "read_requests"]
