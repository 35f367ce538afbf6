"""Expressions in JSON values, whichever functions there are."""

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.errors import Fault, InvalidInput
from shared.expressions import Accessor, Call, Function, Signature, Whole, check, evaluate, parse

VALUES: dict[str, Any] = {
    "n": 6,
    "text": "Day",
    "list": [8, "16"],
    "none": None,
    "yes": True,
    "half": 0.5,
    "object": {"a": [1, {"b": "ü"}], "null": None, "it's": "quoted", "": "empty"},
    "it's": "apostrophe",
    "brace}": "closed",
    "": "nameless",
    "looks like one": "@value('n')",
}
FUNCTIONS = {
    "value": Function(arguments=VALUES, paths=None, call=VALUES.__getitem__),
    "plain": Function(arguments=["x"], call=lambda argument: argument * 2),
    "now": Function(paths=[(), ("a",), ("a", "b")], note="; so there", call=lambda: Whole("now", {"a": {"b": 1}})),
    "only": Function(paths=[("a",)], call=lambda: {"a": None}),
}


def value_of(value: object) -> Any:
    assert check(value, FUNCTIONS, "field") == []
    return evaluate(value, FUNCTIONS, "field")


def faults_of(value: object) -> list[Fault]:
    """What both the check and the evaluation say of a value: the same."""
    with pytest.raises(InvalidInput) as refused:
        evaluate(value, FUNCTIONS, "field")
    assert check(value, FUNCTIONS, "field") == list(refused.value.faults)
    return list(refused.value.faults)


def reason_of(text: str) -> str:
    (fault,) = faults_of(text)
    assert fault.field == "field"
    return fault.reason


# A string that is wholly a call.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@value('n')", 6),
        ("@value('list')", [8, "16"]),
        ("@value('none')", None),
        ("@value('yes')", True),
        ("@value('half')", 0.5),
        ("@value('object')", VALUES["object"]),
        ("@value('it''s')", "apostrophe"),
        ("@value('brace}')", "closed"),
        ("@value('')", "nameless"),
        ("@plain('x')", "xx"),
        ("@now()", "now"),
    ],
)
def test_it_keeps_the_type_of_the_value(text: str, value: object) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@value('object').a", [1, {"b": "ü"}]),
        ("@value('object')['a']", [1, {"b": "ü"}]),
        ("@value('object')?.a", [1, {"b": "ü"}]),
        ("@value('object')?['it''s']", "quoted"),
        ("@value('object')['']", "empty"),
        ("@value('object')?.missing", None),
        ("@value('object')?['missing']?.deeper", None),
        ("@value('none')?.a", None),
        ("@value('object').null?.a", None),
        ("@now().a", {"b": 1}),
        ("@now().a.b", 1),
        ("@now()?['a'].b", 1),
        ("@only().a", None),
    ],
)
def test_accessors_lead_into_the_value(text: str, value: object) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    "text",
    ["@ value ( 'n' ) ", "@\tvalue('n')\n", "@{ value( 'n' ) }", "@now ( ) . a . b", "@now() ?[ 'a' ] ?. b"],
)
def test_white_space_may_stand_between_tokens(text: str) -> None:
    assert str(value_of(text)) in ("6", "1")


def test_what_a_function_gives_is_not_evaluated_again() -> None:
    assert value_of("@value('looks like one')") == "@value('n')"
    assert value_of("@{value('looks like one')}") == "@value('n')"


# Calls inside a text, and escapes.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@{value('n')}", "6"),
        ("a @{value('n')}@{value('text')} b", "a 6Day b"),
        ("[@{value('none')}]", "[]"),
        ("@{value('yes')}", "true"),
        ("@{value('half')}", "0.5"),
        ("@{value('list')}", '[8,"16"]'),
        ("@{value('object').a}", '[1,{"b":"ü"}]'),
        ("@{value('brace}')}", "closed"),
        ("@{value('object')?.missing}", ""),
        ("@{now()} and @{now().a}", 'now and {"b":1}'),
    ],
)
def test_within_a_text_a_value_becomes_text(text: str, value: str) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@@value('n')", "@value('n')"),
        ("@@", "@"),
        ("@@@", "@@"),
        ("@@{value('n')}", "@{value('n')}"),
        ("@@@{value('n')}", "@6"),
        ("@@@@{", "@@{"),
        ("a @@{b} @{value('n')}", "a @{b} 6"),
        ("@@a @@{b} @{value('n')}", "@a @{b} 6"),
        ("someone@example.org", "someone@example.org"),
        ("a@@b", "a@@b"),
        (" @value('n')", " @value('n')"),
        ("a {b} 'c'", "a {b} 'c'"),
        ("", ""),
    ],
)
def test_a_doubled_sign_stands_for_a_plain_one(text: str, value: str) -> None:
    assert value_of(text) == value


# What is refused.


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("@utcNow()", "utcNow"),
        ("@add(value('n'), 1)", "add"),
        ("@{concat('b')}", "concat"),
        ("a @{ body ('Call') } b", "body"),
        ("@Value('n')", "Value"),
        ("@value_('n')", "value_"),
    ],
)
def test_an_unknown_function_is_named_and_the_known_ones_told(text: str, function: str) -> None:
    assert reason_of(text) == (
        f"the function '{function}' cannot be used here, "
        "only value('name'), plain('name'), now(), now().a, now().a.b, only().a; '@@' stands for a plain '@'"
    )


@pytest.mark.parametrize("text", ["@", "@n", "@'n'", "@1", "@{}", "@{n}", "@ @value('n')", "@[value('n')]"])
def test_what_is_no_call_is_refused(text: str) -> None:
    assert "cannot be used here, only value('name')" in reason_of(text)


@pytest.mark.parametrize(
    ("text", "function", "takes"),
    [
        ("@value()", "value", "one text in single quotes"),
        ("@value(n)", "value", "one text in single quotes"),
        ('@value("n")', "value", "one text in single quotes"),
        ("@value('n', 'n')", "value", "one text in single quotes"),
        ("@value(value('n'))", "value", "one text in single quotes"),
        ("@value('n'", "value", "one text in single quotes"),
        ("@value('n)", "value", "one text in single quotes"),
        ("@value('it's')", "value", "one text in single quotes"),
        ("@value(", "value", "one text in single quotes"),
        ("@now('x')", "now", "no argument"),
        ("@now('')", "now", "no argument"),
        ("@now(1)", "now", "no argument"),
        ("@now(", "now", "no argument"),
    ],
)
def test_a_wrong_argument_is_told_with_the_function(text: str, function: str, takes: str) -> None:
    assert reason_of(text) == f"the function '{function}' takes {takes}: '{text[1:]}'"


@pytest.mark.parametrize(("text", "call"), [("@value('N')", "value('N')"), ("@{plain(' x')}", "plain(' x')")])
def test_an_argument_that_is_not_taken_is_told(text: str, call: str) -> None:
    assert reason_of(text) == f"{call} does not exist"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("@now().b", "now().b"),
        ("@now()?['a']?.c", "now().a.c"),
        ("@now()['a.b']", "now().a.b"),  # one name, not two
        ("@now().a.b.c", "now().a.b.c"),
        ("@plain('x').length", "plain('x').length"),
        ("@only()", "only()"),
    ],
)
def test_an_accessor_that_may_not_follow_is_told_with_its_call(text: str, call: str) -> None:
    reason = reason_of(text)
    assert reason.startswith(f"'{call}' cannot be used here, only ")
    assert reason.endswith("; so there") is call.startswith("now")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("@value('n')@value('n')", "@value('n')"),
        ("@value('object').a[0]", "[0]"),
        ("@now().", "."),
        ("@now()?", "?"),
        ("@now()['a'", "['a'"),
        ("@now() + 1", "+ 1"),
        ("@now()..a", "..a"),
        ("@now().a b", "b"),
    ],
)
def test_what_follows_a_call_and_is_no_accessor_is_told(text: str, rest: str) -> None:
    assert reason_of(text) == f"the expression '{text[1:]}' cannot be read from '{rest}' on"


@pytest.mark.parametrize("text", ["@{", "a @{value('n') b", "@{'}", "@{value('n}')", "@@a @{"])
def test_an_interpolation_that_is_never_closed_is_told(text: str) -> None:
    assert reason_of(text) == "'@{' is never closed; write '@@{' for the plain characters"


def test_long_expressions_are_cut_in_what_is_told() -> None:
    for text in (
        "@" + "f" * 5000 + "()",
        "@value('" + "x" * 5000 + "')",
        "@now()." + "a" * 5000,
        "@" + "(" * 5000,
    ):
        assert len(reason_of(text)) < 400


@pytest.mark.parametrize(
    "text",
    [
        "@value(" + " " * 200_000 + "x",
        "@" + " " * 200_000,
        "@now()" + " " * 200_000 + "x",
        "@now()" + ".a" * 20_000,
        "@now()" + "?" * 200_000,
        "@value('" + "'" * 200_000,
        "@{" + "'" * 200_001,
        "@{" * 100_000,
        "@@{" * 70_000 + "@{",
        "@{value('n')}" * 15_000 + "@{",
    ],
    ids=lambda text: text[:12],
)
def test_long_nonsense_is_refused_in_no_time(text: str) -> None:
    began = time.perf_counter()
    assert reason_of(text)
    assert time.perf_counter() - began < 10  # quadratic: minutes


# Where in a value.


def test_objects_and_lists_are_evaluated_throughout_and_left_as_they_were() -> None:
    given = {"a": ["@value('n')", {"b": "@{value('text')}", "@value('n')": 1}], "c": 5, "d": None, "e": True}
    before = copy.deepcopy(given)
    assert value_of(given) == {"a": [6, {"b": "Day", "@value('n')": 1}], "c": 5, "d": None, "e": True}
    assert given == before


def test_faults_name_the_exact_place() -> None:
    value = {"a": {"b": "@x()"}, "c": [1, {"d": "@{y()}"}, ["ok", "@value('z')"]], "": "@", "k" * 99: "@@ @{"}
    assert [fault.field for fault in faults_of(value)] == [
        "field.a.b",
        "field.c.1.d",
        "field.c.2.1",
        'field.""',
        f"field.{'k' * 80}…",
    ]


@pytest.mark.parametrize(
    ("text", "call", "missing"),
    [
        ("@value('object').missing", "value('object').missing", "missing"),
        ("@{value('object').a.b}", "value('object').a.b", "b"),
        ("@value('none').a", "value('none').a", "a"),
        ("@value('object')?.missing.deeper", "value('object').missing.deeper", "deeper"),
        ("@value('text')?.length", "value('text').length", "length"),
        ("@value('list')?['0']", "value('list').0", "0"),
    ],
)
def test_a_value_that_is_missing_is_an_error_of_the_evaluation(text: str, call: str, missing: str) -> None:
    assert check([text], FUNCTIONS, "inputs.body") == []
    with pytest.raises(InvalidInput) as refused:
        evaluate([text], FUNCTIONS, "inputs.body")
    assert list(refused.value.faults) == [
        Fault("inputs.body.0", f"'{call}' has no value: there is no '{missing}'")
    ]


def test_a_check_needs_no_values() -> None:
    signatures = {"f": Signature(arguments={"a"})}
    assert check(["@f('a')", "@{f('a')}"], signatures, "") == []
    assert [fault.field for fault in check(["@f('b')"], signatures, "x")] == ["x.0"]


def test_a_function_is_called_only_where_its_value_is_used() -> None:
    def fail() -> None:
        raise AssertionError

    functions = {"f": Function(call=fail)}
    assert evaluate(["@@f()", "@@{f()}", "f()"], functions, "") == ["@f()", "@{f()}", "f()"]


# Whatever a value holds.

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)
telling = st.text(st.sampled_from("@{}'()[].? anow"), max_size=20) | st.lists(
    st.sampled_from(["@", "@@", "@{", "@@{", "}", "'", "value('n')", "now()", ".a", "?['a']", " "]), max_size=8
).map("".join)


def without_signs(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("@", "")
    if isinstance(value, list):
        return [without_signs(item) for item in value]
    return {k: without_signs(v) for k, v in value.items()} if isinstance(value, dict) else value


def escaped(text: str) -> str:
    """How a caller writes a plain text."""
    doubled = text.replace("@{", "@@{")
    return f"@{doubled}" if text.startswith("@") and not text.startswith("@{") else doubled


def all_escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [all_escaped(item) for item in value]
    return {k: all_escaped(v) for k, v in value.items()} if isinstance(value, dict) else value


@settings(deadline=None)
@given(json_values.map(without_signs))
def test_json_without_the_sign_comes_back_equal(value: Any) -> None:
    assert value_of(value) == value


@settings(deadline=None)
@given(json_values)
def test_escaped_json_comes_back_plain(value: Any) -> None:
    assert value_of(all_escaped(value)) == value


@settings(deadline=None)
@given(telling)
@example("@{")
@example("@@{")
@example("@@@{")
@example("x@@@{")
def test_escaped_text_comes_back_plain(text: str) -> None:
    assert value_of(escaped(text)) == text


@settings(deadline=None)
@given(st.lists(st.tuples(telling.filter(lambda t: not t.endswith("@")), st.sampled_from(sorted(VALUES)))))
def test_values_between_escaped_texts_come_back_in_their_places(pieces: list[tuple[str, str]]) -> None:
    def shown(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    quoted = ((text, name.replace("'", "''")) for text, name in pieces)
    written = "-" + "".join(f"{escaped('-' + text)}@{{value('{name}')}}" for text, name in quoted)
    expected = "-" + "".join(
        "-" + text + ("" if VALUES[name] is None else shown(VALUES[name])) for text, name in pieces
    )
    assert value_of(written) == expected


@settings(deadline=None)
@given(telling | st.text())
def test_the_check_and_the_evaluation_agree_on_any_text(text: str) -> None:
    functions = {name: FUNCTIONS[name] for name in ("now", "plain", "only")}
    functions["value"] = Function(arguments=["n"], call=lambda _: 6)  # nothing that can be missing
    faults = check(text, functions, "field")
    if not faults:
        evaluate(text, functions, "field")
        return
    with pytest.raises(InvalidInput) as refused:
        evaluate(text, functions, "field")
    assert list(refused.value.faults) == faults


spaces = st.sampled_from(["", " ", "\t\n"])
quotable = st.text().map(lambda text: "'" + text.replace("'", "''") + "'")


@settings(deadline=None)
@given(st.data(), st.text(), st.lists(st.tuples(st.text(), st.booleans()), max_size=4))
def test_any_argument_and_any_names_are_read_as_they_were_written(
    data: st.DataObject, argument: str, names: list[tuple[str, bool]]
) -> None:
    tokens = ["f", "(", "'" + argument.replace("'", "''") + "'", ")"]
    for name, optional in names:
        dotted = name.isascii() and name.isidentifier() and data.draw(st.booleans())
        tokens += ["?"] * optional + ([".", name] if dotted else ["[", "'" + name.replace("'", "''") + "'", "]"])
    text = "".join(token + data.draw(spaces) for token in tokens)
    read = parse(f"@{text}", {"f": Signature(arguments=[argument], paths=None)})
    assert read == Call("f", argument, tuple(Accessor(*name) for name in names))
    assert parse(f"@{{{text}}}", {"f": Signature(arguments=[argument], paths=None)}) == ["", read, ""]
