"""Jobs are created, read and deleted; their runs are shown."""

from typing import Any

import pytest

from shared.engine.removal import Remover
from tests.harness import Bench, Receiver, http_job
from tests.web.support import NOON_TEXT, ask, daily, every_row, fields, got, hourly, put, put_in, tag_of, valid


async def test_post_makes_a_job_and_says_where_it_is(at: Bench) -> None:
    made = await ask(at, "create", valid(id="cust-42.nightly_report~1"))
    assert made.status == 201
    assert made.headers["Location"] == "/api/jobs/cust-42.nightly_report~1"
    read = await ask(at, "get", job="cust-42.nightly_report~1")
    assert read.status == 200
    assert read.body == made.body
    assert tag_of(read) == tag_of(made)
    assert tag_of(made).startswith('"')


async def test_post_answers_with_what_was_given_and_what_is_known(at: Bench) -> None:
    body = valid(id="a")
    made = (await ask(at, "create", body)).body
    given = {name: value for name, value in body.items() if name != "action"}
    assert given.items() <= made.items()
    assert made["actions"] == {"Action": body["action"]}
    assert made["nextOccurrence"] == "2026-10-02T09:30:00Z"
    assert made["createdAt"] == made["updatedAt"] == NOON_TEXT
    assert [made[name] for name in ("fired", "missed", "skipped", "lastRun", "warnings")] == [0, 0, 0, None, []]
    assert made["evaluatedRecurrence"] == body["trigger"]["recurrence"]
    assert "Pacific Standard Time" in made["describe"]


async def test_a_job_without_an_id_is_given_one_of_its_own(at: Bench) -> None:
    one, other = await ask(at, "create", valid()), await ask(at, "create", valid(id=None))
    assert one.body["id"] != other.body["id"]
    assert one.headers["Location"] == f"/api/jobs/{one.body['id']}"
    assert await got(at, one.body["id"]) == one.body


async def test_an_id_that_exists_is_a_conflict_and_changes_nothing(at: Bench) -> None:
    made = await at.create(**valid(id="a"))
    again = await ask(at, "create", valid(id="a", description="other"))
    assert again.status == 409
    assert again.headers["Content-Type"] == "application/problem+json"
    assert await got(at, "a") == made


async def test_ids_differ_by_case(at: Bench) -> None:
    await at.create(**valid(id="a", description="small"))
    await at.create(**valid(id="A", description="capital"))
    assert (await got(at, "a"))["description"] == "small"
    assert (await got(at, "A"))["description"] == "capital"


@pytest.mark.parametrize("job", ["...", "~", "-", "_", "a" * 128, "A-Z.a_z~0-9", "job"])
async def test_any_id_of_the_permitted_characters_works(at: Bench, job: str) -> None:
    assert (await put(at, job, valid())).status == 201
    assert (await got(at, job))["id"] == job
    assert (await ask(at, "list", query={"prefix": job})).body["value"][0]["id"] == job
    assert (await ask(at, "delete", job=job)).status == 204


async def test_the_short_forms_mean_the_same_as_the_long_ones(at: Bench) -> None:
    body = valid(id="short")
    short = await at.create(**body)
    long = valid(id="long", trigger=None, action=None)
    long |= {"triggers": {"Every_day": body["trigger"]}, "actions": {"Action": body["action"]}}
    made = await at.create(**long)
    assert made["trigger"] == short["trigger"]
    assert made["actions"] == short["actions"]
    assert not {"triggers", "action"} & made.keys()


async def test_an_action_keeps_its_name(at: Bench) -> None:
    made = await at.create(id="a", **valid(action=None, actions={"Call-1_b": valid()["action"]}))
    assert list(made["actions"]) == ["Call-1_b"]


async def test_null_means_absent(at: Bench) -> None:
    bare = {
        "trigger": {"type": "Recurrence", "recurrence": {"frequency": "Day", "interval": 1}},
        "action": {"type": "Http", "inputs": {"method": "GET", "uri": "https://example.org"}},
    }
    nulls = {
        "id": None,
        "description": None,
        "tags": None,
        "state": None,
        "triggers": None,
        "actions": None,
        "parameters": None,
        "serviceType": None,
        "historyLimit": None,
        "trigger": bare["trigger"] | {"runAt": None, "skipInitialRun": None, "maxLateness": None},
        "action": {
            "type": "Http",
            "limit": None,
            "inputs": bare["action"]["inputs"]
            | {"headers": None, "queries": None, "body": None, "retryPolicy": None},  # type: ignore[operator]
        },
    }
    plain, made = await at.create(**bare), await at.create(**nulls)
    assert made | {"id": plain["id"]} == plain


async def test_null_inside_what_is_sent_is_kept(at: Bench) -> None:
    body = {"a": None, "b": [None]}
    made = await at.create(**put_in("action.inputs.body", body), id="a")
    assert made["actions"]["Action"]["inputs"]["body"] == body
    assert (await at.create(**valid(parameters={"n": None})))["parameters"] == {"n": None}


async def test_a_body_may_be_nested_50_levels_deep(at: Bench) -> None:
    deep: Any = 1
    for _ in range(46):  # within body, action, inputs and body
        deep = [deep]
    assert (await ask(at, "create", put_in("action.inputs.body", deep))).status == 201
    assert fields(await ask(at, "create", put_in("action.inputs.body", [deep]))) == ["body"]


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "Application/JSON", "application/x+json"]
)
async def test_json_is_taken_under_any_of_its_names(at: Bench, content_type: str) -> None:
    response = await ask(at, "create", valid(), headers={"content-type": content_type})
    assert response.status == 201


async def test_text_of_any_script_is_kept(at: Bench) -> None:
    text = "每天 \U0001f552 ünïcode \x00 \u2028"
    made = await at.create(**valid(id="a", description=text, tags={text: text}))
    assert (made["description"], made["tags"]) == (text, {text: text})
    assert await got(at, "a") == made


async def test_a_job_with_no_occurrence_at_all_is_completed(at: Bench) -> None:
    recurrence = {
        "startTime": "2026-10-01T08:00:00Z",
        "endTime": "2026-10-01T09:00:00Z",
        "schedule": {"hours": [7]},
    }
    made = await at.create(**daily(**recurrence), id="a")
    assert (made["state"], made["nextOccurrence"]) == ("Completed", None)
    assert await got(at, "a") == made


async def test_a_strange_host_in_the_address_does_not_keep_a_job_from_being_made(at: Bench) -> None:
    made = await ask(at, "create", valid(id="a"), url="http://[/api/jobs/?code=x")
    assert (made.status, made.headers["Location"]) == (201, "/api/jobs/a")


async def test_the_answer_warns_of_a_run_at_creation(at: Bench, target: Receiver) -> None:
    made = await at.create(id="a", **http_job(target.url))
    assert made["warnings"] == [{"code": "InitialRun", "at": NOON_TEXT}]
    assert made["nextOccurrence"] == NOON_TEXT
    await at.dispatch("a")
    assert (await got(at, "a"))["warnings"] == []


async def test_no_warning_where_no_run_at_creation_will_happen(at: Bench) -> None:
    skipping = hourly()
    skipping["trigger"]["skipInitialRun"] = True
    skipped = await at.create(**skipping)
    assert (skipped["warnings"], skipped["nextOccurrence"]) == ([], "2026-09-08T13:00:00Z")
    started = await at.create(**daily(startTime="2026-09-09T00:00:00Z"))
    assert started["warnings"] == []
    once = await at.create(**valid(trigger={"type": "Once"}))
    assert (once["warnings"], once["nextOccurrence"]) == ([], NOON_TEXT)


async def test_the_answer_warns_of_a_run_at_an_update(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url))
    await at.dispatch("a")
    at.clock.advance(seconds=3)
    changed = await put(at, "a", http_job(target.url, every=20))
    assert changed.body["warnings"] == [{"code": "InitialRun", "at": "2026-09-08T12:00:03Z"}]


@pytest.mark.parametrize("route", ["get", "delete", "runs"])
async def test_a_job_that_does_not_exist_is_not_found(at: Bench, route: str) -> None:
    response = await ask(at, route, job="a")
    assert response.status == 404
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.body["title"] == "Not found"
    assert "errors" not in response.body


async def test_a_deleted_job_is_gone_with_all_its_rows(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url))
    await at.create(id="ab", **http_job(target.url))
    for _ in range(3):
        await at.dispatch()
        at.clock.advance(seconds=10)
    await at.fire_only("a")
    other = await got(at, "ab")
    gone = await ask(at, "delete", job="a")
    assert (gone.status, gone.body, gone.content()) == (204, None, b"")
    for route in ("get", "delete", "runs"):
        assert (await ask(at, route, job="a")).status == 404
    assert not [row for row in await every_row(at) if "a" in row["RowKey"].split(":")]
    assert await got(at, "ab") == other


async def test_if_match_lets_only_the_version_it_names_be_deleted(at: Bench) -> None:
    first = tag_of(await put(at, "a", valid()))
    second = tag_of(await put(at, "a", valid(description="second")))
    assert (await ask(at, "delete", job="a", headers={"If-Match": first})).status == 412
    assert (await got(at, "a"))["description"] == "second"
    assert (await ask(at, "delete", job="a", headers={"If-Match": second})).status == 204


async def test_a_job_created_after_a_deletion_is_another_one(at: Bench) -> None:
    first = await put(at, "a", valid())
    await ask(at, "delete", job="a")
    second = await put(at, "a", valid())
    assert second.status == 201
    assert second.body == first.body
    assert tag_of(second) != tag_of(first)
    assert (await put(at, "a", valid(description="late"), If_Match=tag_of(first))).status == 412


async def test_a_job_whose_deletion_is_under_way_is_neither_read_nor_listed_and_can_be_created(at: Bench) -> None:
    first = await put(at, "a", valid())
    job = await at.app.store.jobs.get("a")
    assert job
    assert await Remover(at.app.store.jobs, at.app.store.runs).begin(job, at.clock())
    for route in ("get", "runs"):
        assert (await ask(at, route, job="a")).status == 404
    assert (await ask(at, "list")).body == {"value": [], "continuation": None}
    assert (await put(at, "a", valid(), If_Match=tag_of(first))).status == 412
    again = await ask(at, "create", valid(id="a"))
    assert again.status == 201
    assert tag_of(again) != tag_of(first)


async def test_runs_come_newest_first_with_those_executing_and_those_missed(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=60))
    await at.dispatch("a")
    at.clock.advance(minutes=5, seconds=1)
    await at.dispatch("a")
    at.clock.advance(minutes=1)
    await at.fire_only("a")
    executing, fired, missed, first = await at.runs("a")
    assert [run["status"] for run in (executing, fired, missed, first)] == [
        "Running",
        "Succeeded",
        "Missed",
        "Succeeded",
    ]
    assert [run["seq"] for run in (executing, fired, missed, first)] == [4, 3, 2, 1]
    assert executing["scheduledTime"] == "2026-09-08T12:06:00Z"
    assert executing["endTime"] is None
    assert (fired["scheduledTime"], fired["lateness"]) == ("2026-09-08T12:05:00Z", "PT1S")
    assert (missed["from"], missed["to"], missed["count"]) == ("2026-09-08T12:01:00Z", "2026-09-08T12:04:00Z", 4)
    assert "next occurrence" in missed["reason"]
    assert first["scheduledTime"] == NOON_TEXT
    assert first["actions"]["Action"]["response"]["statusCode"] == 200


async def test_a_job_that_has_not_run_has_no_runs(at: Bench) -> None:
    await at.create(**valid(id="a"))
    assert await at.runs("a") == []


async def test_runs_beyond_the_history_limit_are_not_shown(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, historyLimit=3))
    for _ in range(5):
        await at.dispatch("a")
        at.clock.advance(seconds=10)
    assert [run["seq"] for run in await at.runs("a")] == [5, 4, 3]
    await put(at, "a", http_job(target.url, historyLimit=1))
    assert len(await at.runs("a")) <= 1


async def test_no_jobs_are_an_empty_page(at: Bench) -> None:
    assert (await ask(at, "list")).body == {"value": [], "continuation": None}


async def test_the_key_may_stand_in_the_query(at: Bench) -> None:
    assert (await ask(at, "list", query={"code": "key"})).status == 200


@pytest.mark.parametrize("route", ["suspend", "resume"])
async def test_a_job_is_suspended_and_resumed_only_at_the_version_named(at: Bench, route: str) -> None:
    made = await ask(at, "create", valid(id="a", state="Suspended" if route == "resume" else "Enabled"))
    before = await got(at, "a")
    for stale in ('"x"', 'W/"x"', ""):
        refused = await ask(at, route, job="a", headers={"If-Match": stale})
        assert (refused.status, refused.body["title"]) == (412, "Precondition failed")
    assert (await ask(at, route, job="a", headers={"If-None-Match": "*"})).status == 412
    assert await got(at, "a") == before
    changed = await ask(at, route, job="a", headers={"If-Match": tag_of(made)})
    assert changed.status == 200
    assert changed.body["state"] != before["state"]
    assert (await ask(at, route, job="a", headers={"If-Match": tag_of(made)})).status == 412
