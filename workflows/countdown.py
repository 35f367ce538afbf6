"""The worked example: counts down from the job's parameter `from`, pausing `pause` seconds after each number."""

from datetime import timedelta

from shared.workflow import Context, workflow


@workflow("example/countdown")
async def countdown(ctx: Context) -> None:
    """Each number is done once the state says so; a crash repeats at most the one that was under way."""
    left = ctx.parameters.get("from", 3) if ctx.state is None else ctx.state["left"]
    if left == 0:
        ctx.complete({"liftOff": ctx.job_id, "attempt": ctx.attempt})
    # The work of one step stands here. It may be repeated, so give its target ctx.idempotency_key.
    await ctx.save({"left": left - 1})
    await ctx.delay(timedelta(seconds=ctx.parameters.get("pause", 1)))
