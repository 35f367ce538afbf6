"""The OpenAPI 3.1 document, made of the table of routes."""

import json
import re
from functools import cache
from typing import Any

from shared.web.exchange import Request, Response, known_query
from shared.web.openapi.parts import HEADERS, LINES, PARAMETERS, PROBLEMS, USUAL, Answer, Parameter, Route
from shared.web.openapi.routes import ROUTES
from shared.web.openapi.schemas import components, refer

VERSION = "0.1.0"
BASE = "/api"
PROBLEM = "application/problem+json"
ABOUT = """Jobs that run by the calendar: what to do and when. Times are UTC, durations ISO 8601.
Properties that do not exist are errors, and so are query parameters; an empty one counts as absent."""
KEYS = {
    "key": {"type": "apiKey", "in": "header", "name": "x-functions-key", "description": "a function key"},
    "code": {"type": "apiKey", "in": "query", "name": "code", "description": "the same in the address"},
}


async def describe(request: Request) -> Response:
    """GET /openapi.json. It needs no storage, and so no app."""
    known_query(request)
    return Response(status=200, body=_as_bytes())


@cache
def _as_bytes() -> bytes:
    return json.dumps(document(), ensure_ascii=False).encode()


def document() -> dict[str, Any]:
    """The document, a new one each time."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(f"/{route.path}", {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "timerjobs", "version": VERSION, "description": ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": BASE}],
        "security": [{name: []} for name in KEYS],
        "paths": paths,
        "components": {
            "schemas": components()
            | {
                "RunOrStretch": {"anyOf": [refer("Run"), refer("Stretch")]},
                "Text": {"type": "string"},
                "OpenApi": {"type": "object", "required": ["openapi", "info", "paths"]},
            },
            "parameters": {name: _parameter(name, parameter) for name, parameter in PARAMETERS.items()},
            "headers": {name: {"schema": schema, "description": says} for name, (schema, says) in HEADERS.items()},
            "securitySchemes": KEYS,
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters = [*re.findall(r"\{(\w+)\}", route.path), *route.parameters]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.says,
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in parameters],
        "responses": _responses(route),
    }
    if route.anonymous:
        operation["security"] = []
    if route.body:
        given = {example.title: example.body for example in route.examples if example.body is not None}
        content = {route.body.media_type: _media(route.body.schema, route.body.media_type, given)}
        operation["requestBody"] = {"required": route.body.required, "content": content}
    return operation


def _responses(route: Route) -> dict[str, Any]:
    problems = {
        status: Answer(says=PROBLEMS[status], schema="Problem", media_type=PROBLEM)
        for status in (*(USUAL if route.usual else ()), *route.problems)
    }
    refused = {} if route.anonymous else {401: Answer(says="The key is missing or wrong")}
    answers = problems | refused | dict(route.answers)
    return {str(status): _response(answers[status], _given(route, status)) for status in sorted(answers)}


def _given(route: Route, status: int) -> dict[str, Any]:
    return {e.title: e.answer for e in route.examples if e.status == status and e.answer is not None}


def _response(answer: Answer, examples: dict[str, Any]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.says}
    if answer.headers:
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in answer.headers}
    if answer.schema:
        response["content"] = {answer.media_type: _media(answer.schema, answer.media_type, examples)}
    return response


def _media(schema: str, media_type: str, examples: dict[str, Any]) -> dict[str, Any]:
    shown = {re.sub(r"\W+", "-", title): {"summary": title, "value": value} for title, value in examples.items()}
    of_whole = {"schema": refer("Text"), "x-itemSchema": refer(schema)}  # OpenAPI 3.2 has itemSchema
    media = of_whole if media_type == LINES else {"schema": refer(schema)}
    return media | ({"examples": shown} if shown else {})


def _parameter(name: str, parameter: Parameter) -> dict[str, Any]:
    # The platform hands an empty query parameter to no function, so it counts as absent.
    more = {"path": {"required": True}, "query": {"allowEmptyValue": True}}.get(parameter.place, {})
    return {
        "name": name,
        "in": parameter.place,
        "description": parameter.says,
        "schema": dict(parameter.schema),
    } | more
