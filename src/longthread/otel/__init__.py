"""OpenTelemetry: traces and metrics to a collector. The extra `otel` brings what it needs."""
