"""What schemathesis has to be told of the API. Named in schemathesis.toml."""

from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """JSON lines are described, and so drawn, as a text."""
    return value.encode(errors="replace") if isinstance(value, str) else str(value).encode()


@schemathesis.deserializer("application/x-ndjson")
def text(ctx: schemathesis.DeserializationContext, response: schemathesis.Response) -> str:
    """The answer's lines, as a text."""
    return response.content.decode()
