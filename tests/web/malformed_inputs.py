"""Http actions with wrong retry policies, wrong authentication and wrong expressions."""

from typing import Any

from tests.web.malformed import INPUTS, LONG, Bad, at_path
from tests.web.support import daily, put_in, valid

RETRY = f"{INPUTS}.retryPolicy"
AUTHENTICATION = f"{INPUTS}.authentication"


def policies(field: str, given: dict[str, Any], /, **values: Any) -> list[Bad]:
    """Retry policies with a wrong value of one property."""
    return [
        Bad(
            f"retry-{given['type']}-{field}-{name.replace('_', '-')}",
            f"{RETRY}.{field}",
            put_in(RETRY, given | {field: value}),
        )
        for name, value in values.items()
    ]


NONE: dict[str, Any] = {"type": "none"}
FIXED: dict[str, Any] = {"type": "fixed", "count": 4, "interval": "PT10S"}
GROWING: dict[str, Any] = {"type": "exponential", "count": 4, "interval": "PT10S"}

POLICY = [
    *policies("type", FIXED, capital="Fixed", unknown="linear", null=None, number=1, list=["fixed"], empty=""),
    *policies("count", NONE, given=4),
    *policies("interval", NONE, given="PT10S"),
    *policies("none", NONE, named_like_its_type=1),
    *policies("minimumInterval", FIXED, given="PT5S"),
    *policies("maximumInterval", FIXED, given="PT5S"),
    *[
        bad
        for given in (FIXED, GROWING)
        for bad in (
            *policies(
                "count", given, zero=0, negative=-1, over=91, text="4", float=1.5, boolean=True, huge=10**900
            ),
            *policies("count", given, null=None, expression="@parameters('n')"),
            *policies("interval", given, null=None, number=10, words="10 s", zero="PT0S", negative="-PT10S"),
            *policies(
                "interval", given, over="P1DT1S", months="P1M", fraction="PT1.5S", empty="", clock="00:00:10"
            ),
        )
    ],
    *policies("minimumInterval", GROWING, number=5, zero="PT0S", over="P2D", words="5 s"),
    *policies("maximumInterval", GROWING, number=5, zero="PT0S", over="P2D", below_the_usual_minimum="PT4S"),
    *policies("maximumInterval", GROWING | {"minimumInterval": "PT1H"}, below_minimum="PT59M"),
    *policies("deltaBackoff", GROWING, unknown="PT5S"),
]


def authenticated(name: str, field: str, given: Any, uri: str = "https://reports.example.org/") -> Bad:
    """A request with this authentication; `field` without the beginning that all share."""
    inputs = {"method": "GET", "uri": uri, "authentication": given}
    path = f"{AUTHENTICATION}.{field}" if field else AUTHENTICATION
    return Bad(f"authentication-{name.replace('_', '-')}", path, put_in(INPUTS, inputs))


def credentials(field: str, given: dict[str, Any], /, **values: Any) -> list[Bad]:
    """Authentication with a wrong value of one property."""
    return [
        authenticated(f"{given['type']}-{field}-{name}", field, given | {field: value})
        for name, value in values.items()
    ]


def settings(**names: Any) -> list[Bad]:
    return [
        authenticated(f"Raw-setting-{each}", "value.setting", {"type": "Raw", "value": {"setting": name}})
        for each, name in names.items()
    ]


# The operator of the bench that these are sent to allows tokens for api://reports to reports.example.org, and
# settings to reports.example.org and all below example.net.
IDENTITY = {"type": "ManagedServiceIdentity", "audience": "api://reports"}
SECRET = {"type": "Raw", "value": {"setting": "SECRET_REPORTS"}}

CREDENTIALS = [
    *at_path(AUTHENTICATION, text="Bearer x", list=[IDENTITY], number=1),
    authenticated("type-absent", "type", {"audience": "api://reports"}),
    *credentials(
        "type", IDENTITY, unknown="ActiveDirectoryOAuth", basic="Basic", lower_case="raw", null=None, number=1
    ),
    authenticated("audience-absent", "audience", {"type": "ManagedServiceIdentity"}),
    *credentials("audience", IDENTITY, null=None, number=1, empty="", long=LONG, list=["api://reports"]),
    *credentials("audience", IDENTITY, not_allowed="https://vault.azure.net", with_slash="api://reports/"),
    *credentials("audience", IDENTITY, capital="API://reports", expression="@parameters('n')"),
    *credentials(
        "identity", IDENTITY, number=1, empty="", spaces="a b", resource_id="/subscriptions/x", long=LONG
    ),
    *credentials("value", IDENTITY, of_another_type={"setting": "SECRET_REPORTS"}),
    *credentials("ManagedServiceIdentity", IDENTITY, named_like_its_type=1),
    authenticated("value-absent", "value", {"type": "Raw"}),
    *credentials("value", SECRET, null=None, text="Bearer x", list=["SECRET_REPORTS"], number=1),
    *credentials("audience", SECRET, of_another_type="api://reports"),
    *credentials("username", SECRET, unknown="admin"),
    authenticated("setting-absent", "value.setting", {"type": "Raw", "value": {}}),
    authenticated("value-more", "value.x", {"type": "Raw", "value": {"setting": "SECRET_REPORTS", "x": 1}}),
    *settings(
        number=1, null=None, empty="", other="AzureWebJobsStorage", bare="SECRET_", lower_case="SECRET_reports"
    ),
    *settings(
        prefix="MY_SECRET_REPORTS",
        of_the_operator="SECRET_HOSTS",
        line_end="SECRET_REPORTS\n",
        long="SECRET_" + LONG,
    ),
    authenticated("identity-elsewhere", "", IDENTITY, "https://example.org/"),
    authenticated("identity-below", "", IDENTITY, "https://a.reports.example.org/"),
    authenticated("identity-in-the-clear", "", IDENTITY, "http://reports.example.org/"),
    authenticated("identity-behind-a-known-host", "", IDENTITY, "https://evil.example/@{parameters('n')}"),
    authenticated("secret-elsewhere", "", SECRET, "https://example.org/"),
    authenticated("secret-above", "", SECRET, "https://example.net/"),
    authenticated("secret-beside", "", SECRET, "https://evilexample.net/"),
    authenticated("secret-in-the-clear", "", SECRET, "http://a.example.net/"),
    Bad(
        "authentication-by-its-long-name",
        "actions.Call.inputs.authentication.audience",
        valid(
            action=None,
            actions={
                "Call": {
                    "type": "Http",
                    "inputs": {
                        "method": "GET",
                        "uri": "https://example.org",
                        "authentication": IDENTITY | {"audience": "x"},
                    },
                }
            },
        ),
    ),
]


def used(**texts: str) -> list[Bad]:
    """Expressions that a body cannot have."""
    return [
        Bad(f"expression-{name.replace('_', '-')}", f"{INPUTS}.body.a.0", put_in(f"{INPUTS}.body", {"a": [text]}))
        for name, text in texts.items()
    ]


EXPRESSION = [
    *at_path(f"{INPUTS}.uri", plain_sign="ftp://example.org/@@{a}", plain_signs="ftp://example.org/@@{@@{"),
    *at_path(f"{INPUTS}.headers.x-a", plain_sign="ü@@{a}"),
    *at_path(f"{INPUTS}.uri", unknown_parameter="@parameters('uri')", function="https://x/@{concat('a', 'b')}"),
    *at_path(f"{INPUTS}.method", unknown_parameter="@parameters('method')", known_parameter="@parameters('n')"),
    *at_path(
        f"{INPUTS}.headers.x-a", unknown_parameter="@{parameters('m')}", function="@guid()", never_closed="a@{"
    ),
    *at_path(
        f"{INPUTS}.queries.q", unknown_parameter="@parameters('q')", window="@trigger().outputs.windowEndTime"
    ),
    Bad("expression-as-body", f"{INPUTS}.body", put_in(f"{INPUTS}.body", "@utcNow()")),
    Bad("expression-deep-in-body", f"{INPUTS}.body.a.1.b", put_in(f"{INPUTS}.body", {"a": [0, {"b": "x@{1}"}]})),
    Bad(
        "expression-without-parameters",
        f"{INPUTS}.body",
        put_in(f"{INPUTS}.body", "@parameters('n')") | {"parameters": None},
    ),
    *used(
        unknown_parameter="@parameters('N')",
        long_parameter=f"@parameters('{LONG}')",
        parameter_without_a_name="@parameters()",
        parameter_without_quotes="@parameters(n)",
        parameter_in_double_quotes='@parameters("n")',
        parameter_of_two_names="@parameters('n', 'm')",
        function_in_another="@concat(parameters('n'))",
        function_unknown="@utcNow()",
        function_in_another_case="@Trigger()",
        function_long="@" + LONG + "()",
        of_an_action="@body('Call')",
        of_outputs="@outputs('Call')['body']",
        window_of_a_recurrence="@trigger().outputs.windowStartTime",
        optional_window_of_a_recurrence="@{trigger()?.outputs?.windowStartTime}",
        outputs_as_a_whole="@trigger().outputs",
        trigger_with_an_argument="@trigger('T')",
        of_the_trigger_unknown="@trigger().name",
        workflow_as_a_whole="@workflow()",
        run_as_a_whole="@workflow().run",
        bare="@",
        number="@5",
        never_closed="@{parameters('n')",
        more_behind="@parameters('n') + 1",
        second_of_two="@{parameters('n')} and @{parameters('m')}",
    ),
    Bad(
        "expression-window-of-once",
        f"{INPUTS}.body",
        put_in(f"{INPUTS}.body", "@trigger().outputs.windowStartTime") | {"trigger": {"type": "Once"}},
    ),
    Bad(
        "expression-window-unknown",
        f"{INPUTS}.body",
        put_in(f"{INPUTS}.body", "@trigger().outputs.windowMiddle")
        | {"trigger": daily()["trigger"] | {"type": "SlidingWindow"}},
    ),
    Bad(
        "expression-in-the-second-action",
        "actions.B.inputs.body",
        valid(
            action=None,
            actions={
                "A": valid()["action"],
                "B": {
                    "type": "Http",
                    "inputs": {"method": "GET", "uri": "https://example.org", "body": "@item()"},
                },
            },
        ),
    ),
]
