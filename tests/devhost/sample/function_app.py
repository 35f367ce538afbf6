"""A small app for the tests of the local host. What is slow goes on when the test makes a file."""

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)

TASKS: set[asyncio.Task[None]] = set()


async def _wait_for_release(folder: Path) -> None:
    await asyncio.to_thread((folder / "started").touch)
    for _ in range(3000):
        if await asyncio.to_thread((folder / "release").exists):
            return
        await asyncio.sleep(0.02)


def _append(path: Path) -> None:
    with path.open("a") as file:
        file.write(".")


async def _tick(folder: Path) -> None:
    try:
        while True:
            await asyncio.to_thread(_append, folder / "ticks")
            await asyncio.sleep(0.02)
    finally:
        _append(folder / "cleaned")


@app.route("greeting", auth_level=func.AuthLevel.ANONYMOUS)
async def greeting(req: func.HttpRequest) -> str:
    return os.environ["SAMPLE_GREETING"]


@app.route("secret")
async def secret(req: func.HttpRequest) -> str:
    return "for those who have the key"


@app.route("slow")
async def slow(req: func.HttpRequest) -> str:
    await _wait_for_release(Path(req.params["folder"]))
    return "finished"


def _sleep_on(folder: Path) -> str:
    (folder / "started").touch()
    time.sleep(3600)
    return "never"


@app.route("stuck")
def stuck(req: func.HttpRequest) -> str:
    return _sleep_on(Path(req.params["folder"]))


@app.route("stuck_inside")
async def stuck_inside(req: func.HttpRequest) -> str:
    return await asyncio.to_thread(_sleep_on, Path(req.params["folder"]))


@app.route("background")
async def background(req: func.HttpRequest) -> str:
    """Leave a task that outlives the invocation; how many there are now."""
    TASKS.add(asyncio.create_task(_tick(Path(req.params["folder"]))))
    return str(len(TASKS))


@app.route("stubborn")
async def stubborn(req: func.HttpRequest) -> str:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.to_thread((Path(req.params["folder"]) / "started").touch)
            await asyncio.sleep(3600)


@app.queue_trigger("message", "%SAMPLE_QUEUE%", "AzureWebJobsStorage")
async def take(message: func.QueueMessage) -> None:
    await _wait_for_release(Path(message.get_body().decode()))
