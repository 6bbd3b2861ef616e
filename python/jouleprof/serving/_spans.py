"""Requests as spans of OpenTelemetry, with the attributes of its conventions for generative AI."""

from __future__ import annotations

from typing import Any

from .._errors import Unavailable, Unsupported
from ._requests import RequestEnergy

PIP = "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"


class RequestSpans:
    """Ends a span for each request that add() gets, from its arrival to its end.

    tracer: of opentelemetry.trace; without one, OTLP over HTTP to `endpoint`, or to what OTEL_EXPORTER_OTLP_ENDPOINT
    names. Raises Unsupported without OpenTelemetry's packages."""

    def __init__(self, tracer: Any = None, *, endpoint: str | None = None, operation: str = "chat") -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise Unsupported(f"spans need OpenTelemetry's packages, and {error.name} is missing: {PIP}") from error
        self._kind = trace.SpanKind.SERVER
        self._operation = operation
        self._provider: Any = None
        if tracer is None:
            try:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            except ImportError as error:
                raise Unsupported(f"spans need an exporter of OpenTelemetry, and {error.name} is missing: {PIP}"
                                  ) from error
            self._provider = TracerProvider(resource=Resource.create())
            self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
            tracer = self._provider.get_tracer("jouleprof")
        self._tracer = tracer

    def add(self, request: RequestEnergy) -> None:
        """Raises Unavailable where the time of the request is not known."""
        if request.arrival_unix_nanoseconds is None or request.finish_nanoseconds is None:
            raise Unavailable(f"{request.request} has no end, or its recording no wall clock: it can be no span")
        begin = request.arrival_unix_nanoseconds
        name = f"{self._operation} {request.model}" if request.model else self._operation
        attributes = {"gen_ai.operation.name": self._operation, **request.span_attributes()}
        span = self._tracer.start_span(name, kind=self._kind, start_time=begin, attributes=attributes)
        span.end(end_time=begin + request.finish_nanoseconds - request.arrival_nanoseconds)

    def close(self) -> None:
        """Sends what is left."""
        if self._provider is not None:
            self._provider.shutdown()
