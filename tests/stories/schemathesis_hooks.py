"""What schemathesis has to be told of the API. Named in schemathesis.toml."""

from typing import Any

import schemathesis


@schemathesis.hook
def filter_query(context: schemathesis.HookContext, query: dict[str, Any] | None) -> bool:
    """An empty parameter is none to the platform, which hands it to no function: it cannot be a wrong value."""
    return "" not in (query or {}).values()


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """JSON lines are described, and so drawn, as a text."""
    return value.encode(errors="replace") if isinstance(value, str) else str(value).encode()


@schemathesis.deserializer("application/x-ndjson")
def text(ctx: schemathesis.DeserializationContext, response: schemathesis.Response) -> str:
    """The answer's lines, as a text."""
    return response.content.decode()
