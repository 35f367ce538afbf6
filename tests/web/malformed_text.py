"""Bodies that are no JSON object, or none that is taken."""

import json

from tests.web.malformed import LONG, Bad
from tests.web.support import valid


def bodies(**raw: bytes) -> list[Bad]:
    return [Bad(f"body-{name.replace('_', '-')}", "body", raw=value) for name, value in raw.items()]


def with_text(text: str) -> bytes:
    """A valid body but for what stands as a value of its parameters, written by hand."""
    return json.dumps(valid(parameters={"n": "HERE"})).replace('"HERE"', text).encode()


NOT_JSON = [
    *bodies(
        empty=b"",
        blank=b" \n\t ",
        text=b"hello",
        cut_off=json.dumps(valid()).encode()[:-1],
        followed_by_more=json.dumps(valid()).encode() + b"{}",
        trailing_comma=b'{"id": "a",}',
        single_quotes=b"{'id': 'a'}",
        names_without_quotes=b'{id: "a"}',
        comment=b"{} // no",
        raw_control_character=with_text('"a\nb"'),
        raw_nul=with_text('"a\0b"'),
        nul_behind=json.dumps(valid()).encode() + b"\0",
        leading_zero=with_text("01"),
        hexadecimal=with_text("0x1f"),
        plus_sign=with_text("+1"),
        NaN=with_text("NaN"),
        Infinity=with_text("Infinity"),
        minus_Infinity=with_text("-Infinity"),
        float_beyond_all=with_text("1e999"),
        float_below_all=with_text("-1e999"),
        integer_of_5000_digits=with_text("7" * 5000),
        negative_integer_of_5000_digits=with_text("-" + "7" * 5000),
        lone_surrogate=with_text(r'"\ud800"'),
        lone_low_surrogate_as_name=with_text(r'{"\udc00": 1}'),
        not_utf8=with_text('"é"').replace("é".encode(), b"\xe9"),
        overlong_utf8=with_text('"é"').replace("é".encode(), b"\xc0\xaf"),
        surrogate_in_utf8=with_text('"é"').replace("é".encode(), b"\xed\xa0\x80"),
        utf16=json.dumps(valid()).encode("utf-16"),
        byte_order_mark=b"\xef\xbb\xbf" + json.dumps(valid()).encode(),
        name_twice=b'{"id": "a", "id": "a"}',
        name_twice_deep_inside=with_text('{"a": [{"b": 1, "b": 2}]}'),
        name_twice_among_many=b"{" + b",".join(b'"%x":1' % n for n in range(25_000)) + b',"61a7":1}',
        nested_51_levels=with_text("[" * 50 + "]" * 50),
        nested_40000_lists=b"[" * 40_000 + b"]" * 40_000,
        nested_40000_objects=b'{"a":' * 40_000 + b"1" + b"}" * 40_000,
        brackets_never_closed=b"[" * 100_000,
    ),
    *[
        Bad(f"body-{name}", "body", raw=raw)
        for name, raw in {
            "list": b"[]",
            "list-of-a-job": json.dumps([valid()]).encode(),
            "string": b'"job"',
            "number": b"5",
            "float": b"1.5",
            "true": b"true",
            "null": b"null",
        }.items()
    ],
    Bad("body-over-256-KiB", "body", valid(description="x" * (256 * 1024)), status=413),
    Bad("body-of-8-MiB", "body", raw=b" " * (8 * 1024 * 1024), status=413),
    *[
        Bad(f"content-type-{name or 'empty'}", "Content-Type", valid(), headers={"content-type": name}, status=415)
        for name in (
            "",
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/xml",
            "application/jsonp",
            "application/json, text/plain",
            "nonsense",
            "\udc80",
            LONG,
        )
    ],
]
