"""The genuine worker's library around one app, without the host: `python -I worker_harness.py APP [LIBRARY]`.

Runs where `azure-functions-runtime` is installed, or lies in LIBRARY, so it imports nothing of this project.
It speaks JSON, a value a line. First it tells the functions as indexed, or why indexing failed, and ends.
Then it reads invocations, `{"function", "data", "metadata"}`, and tells the outcome of each until there are no
more. `data` and the values of `metadata` are typed as in the worker's protocol: `{"string": "text"}`.
"""

import asyncio
import base64
import importlib
import json
import os
import sys
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

sys.path.extend(sys.argv[2:])
runtime: Any = importlib.import_module("azure_functions_runtime")


class Message:
    """A protobuf message: the fields it was made with. Any other raises AttributeError, which the worker needs."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class TypedData(Message):
    """A value in one field, named after its type, or in none."""

    def WhichOneof(self, _: str) -> str | None:  # noqa: N802
        return next(iter(self.__dict__), None)


class ParameterBinding(Message):
    """A value for a parameter."""

    def WhichOneof(self, _: str) -> str:  # noqa: N802
        return "data"


class BindingInfo(Message):
    """A binding, with its enums."""

    undefined = 0
    out = 1
    inout = 2


class StatusResult(Message):
    """How a request went, with its enum."""

    Failure = 0
    Success = 1
    exception = None


PLAIN = (
    "FunctionLoadResponse",
    "FunctionMetadataResponse",
    "InvocationResponse",
    "RpcException",
    "RpcFunctionMetadata",
    "RpcHttp",
    "WorkerInitResponse",
    "WorkerMetadata",
)
PROTOS = SimpleNamespace(
    BindingInfo=BindingInfo,
    ParameterBinding=ParameterBinding,
    StatusResult=StatusResult,
    TypedData=TypedData,
    **{name: type(name, (Message,), {}) for name in PLAIN},
)


async def ask(handle: Any, kind: str, **fields: Any) -> Any:
    """The answer of one of the worker's handlers to a request."""
    request = SimpleNamespace(**{kind: SimpleNamespace(**fields)})
    return await handle(SimpleNamespace(request=request, properties={"protos": PROTOS, "host": "127.0.0.1"}))


def result(answer: Any) -> dict[str, Any]:
    """Its status, and the stack trace of a failure."""
    exception = answer.result.exception
    return {"status": answer.result.status, "error": exception and exception.stack_trace}


def typed(value: dict[str, Any]) -> TypedData:
    """A value as the host sends it: an HTTP body in bytes, an empty one not at all."""
    if "http" not in value:
        return TypedData(**value)
    http = value["http"]
    body = TypedData(bytes=base64.b64decode(http["body"])) if http["body"] else TypedData()
    return TypedData(http=PROTOS.RpcHttp(**(http | {"body": body})))


async def index(directory: str) -> tuple[dict[str, Any], list[Any]]:
    """Makes the worker index and load an app: the report, and the functions."""
    sys.path.insert(0, directory)
    runtime.start_threadpool_executor()
    ready = await ask(
        runtime.worker_init_request, "worker_init_request", capabilities={}, function_app_directory=directory
    )
    if ready.result.status != StatusResult.Success:
        return result(ready), []
    answer = await ask(runtime.functions_metadata_request, "functions_metadata_request")
    functions = answer.function_metadata_results or []
    for function in functions:
        await ask(runtime.function_load_request, "function_load_request", function_id=function.function_id)
    bindings = {function.name: [json.loads(raw) for raw in function.raw_bindings] for function in functions}
    return result(answer) | {"functions": bindings}, functions


async def invoke(function: Any, data: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    """Calls a function by its trigger, which is the one binding that goes in: the outcome."""
    names = [name for name, binding in function.bindings.items() if binding.direction != BindingInfo.out]
    answer = await ask(
        runtime.invocation_request,
        "invocation_request",
        invocation_id=str(uuid4()),
        function_id=function.function_id,
        input_data=[ParameterBinding(name=name, data=typed(data)) for name in names],
        trigger_metadata={name: TypedData(**value) for name, value in metadata.items()},
        trace_context=SimpleNamespace(trace_parent="", trace_state="", attributes={}),
        retry_context=SimpleNamespace(retry_count=0, max_retry_count=0, exception=None),
    )
    outcome = result(answer)
    if answer.result.status == StatusResult.Success and answer.return_value is not None:
        http = answer.return_value.http
        outcome |= {"code": http.status_code, "headers": http.headers, "body": http.body.bytes.decode()}
    return outcome


async def main(directory: str) -> None:
    """Indexes, then invokes until the end of the input."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the app prints must not come between

    def tell(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=replies, flush=True)

    report, functions = await index(directory)
    tell(report)
    by_name = {function.name: function for function in functions}
    while functions and (line := await asyncio.to_thread(sys.stdin.readline)):
        asked = json.loads(line)
        tell(await invoke(by_name[asked["function"]], asked["data"], asked["metadata"]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
