"""What the API's description says of an answer: every answer that a test gets is held against it."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from shared.web.api import Api, Operation
from shared.web.exchange import Response
from shared.web.openapi.document import document

ROOT = Path(__file__).parents[1]


@cache
def validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    """Of a schema of the document, by its name."""
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{schema}", "components": document()["components"]}
    )


def fits(value: Any, schema: str) -> bool:
    """Whether a value is as a schema of the document has it; raises ValidationError, which says where not."""
    validator(schema).validate(value)
    return True


def holds(text: str, media_type: str, media: dict[str, Any]) -> bool:
    """Whether a body, or an example, is as the document says of its media type."""
    schema = media.get("x-itemSchema", media["schema"])["$ref"].rsplit("/", 1)[-1]
    if media_type.endswith(("/json", "+json")):
        return fits(json.loads(text), schema)
    if "x-itemSchema" in media:
        return all(fits(json.loads(line), schema) for line in text.splitlines())
    return fits(text, schema)


@cache
def documented() -> dict[str, Any]:
    """The operations of the document, by the names that their functions and the app's API have for them."""
    binds = re.findall(r"async def (\w+)\(.*?to\.(\w+\.\w+)", (ROOT / "function_app.py").read_text(), re.DOTALL)
    operations = {each["operationId"]: each for path in document()["paths"].values() for each in path.values()}
    return operations | {ours: operations[function] for function, ours in binds if function in operations}


def hold_to_document(api: Api, operation: Operation, response: Response) -> Response:
    """The answer, if the document has one like it for this operation; a page, which is bytes, as JSON."""
    method: Any = operation
    owner = next(name for name in api.__slots__ if getattr(api, name) is method.__self__)
    described = documented().get(f"{owner}.{method.__name__}")
    if described is None:
        return response
    answer = described["responses"][str(response.status)]
    assert answer.get("headers", {}).keys() <= response.headers.keys()
    if "content" in answer:
        ((media_type, media),) = answer["content"].items()
        assert response.headers.get("Content-Type", "application/json").split(";")[0] == media_type
        assert holds(response.content().decode(), media_type, media)
        if isinstance(response.body, bytes) and media_type == "application/json":
            return replace(response, body=json.loads(response.body))
    else:
        assert response.body is None
    return response
