"""The Bicep sources, read without the compiler: what they declare, use and set.

`python -m tests.infra.source` writes the table of property names anew, which is to be done after `bicep build`
has accepted them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
FILES = [INFRA / "main.bicep", *sorted((INFRA / "app").glob("*.bicep"))]
APP_SETTINGS = "Microsoft.Web/sites/config@"
TABLE = Path(__file__).with_name("properties.json")

_PARSER = Parser(Language(tree_sitter_bicep.language()))
_LOOP_NAMES = ("loop_variable", "loop_enumerator")


@dataclass(frozen=True)
class Source:
    """One Bicep file."""

    text: str
    path: Path

    @classmethod
    def read(cls, path: Path) -> "Source":
        return cls(path.read_text(), path)

    @cached_property
    def root(self) -> Node:
        return _PARSER.parse(self.text.encode()).root_node

    @property
    def params(self) -> dict[str, bool]:
        """Its parameters, and whether each must be given."""
        declared = self._declared("parameter_declaration")
        return {text(node.named_children[0]): len(node.named_children) == 2 for node in declared}

    @property
    def modules(self) -> dict[str, Node]:
        """The modules it uses: from their path to what is passed."""
        return {
            text(node.named_children[1]).strip("'"): body(node) for node in self._declared("module_declaration")
        }

    def resources(self) -> Iterator[tuple[str, Node]]:
        """The full type of each resource it makes (not of those it only looks at), and its body."""
        for node in self._declared("resource_declaration"):
            if any(child.type == "existing" for child in node.children):
                continue
            own, above = text(node.named_children[1]).strip("'"), node.parent
            while above and above.type != "resource_declaration":
                above = above.parent
            if above is not None:
                outer, _, version = text(above.named_children[1]).strip("'").partition("@")
                if not version:  # nested twice
                    outer, version = next(
                        (full.split("@")[0], full.split("@")[1])
                        for full, node in self.resources()
                        if node == body(above)
                    )
                own = f"{outer}/{own}@{version}"
            yield own, body(node)

    def complaints(self) -> list[str]:
        """What is wrong with it, as far as can be told without the compiler."""
        if self.root.has_error:
            return [f"{self.path.name}: it does not parse"]
        declared, used = self._names(), self._used()
        found = [f"{name} is not declared" for name in sorted(used - declared)]
        found += [f"{name} is not used" for name in sorted((declared - used) & self._must_be_used())]
        for module, given in self.modules.items():
            target = self.path.parent / module
            if not target.exists():
                found.append(f"{module} does not exist")
                continue
            params, passed = Source.read(target).params, keys(child(given, "params"))
            found += [f"{module}: {name} is not one of its parameters" for name in sorted(passed - params.keys())]
            found += [
                f"{module}: {name} must be given" for name, must in params.items() if must and name not in passed
            ]
        return [f"{self.path.name}: {each}" for each in found]

    def _declared(self, kind: str) -> list[Node]:
        return [node for node in walk(self.root) if node.type == kind]

    def _must_be_used(self) -> set[str]:
        kinds = ("parameter_declaration", "variable_declaration")
        return {text(node.named_children[0]) for kind in kinds for node in self._declared(kind)}

    def _names(self) -> set[str]:
        kinds = ("resource_declaration", "module_declaration")
        names = self._must_be_used() | {text(n.named_children[0]) for kind in kinds for n in self._declared(kind)}
        for node in walk(self.root):
            if node.type == "for_statement" and node.named_children[0].type == "identifier":
                names.add(text(node.named_children[0]))
            elif node.type in _LOOP_NAMES:
                names.add(text(node))
        return names

    def _used(self) -> set[str]:
        return {text(node) for node in walk(self.root) if node.type == "identifier" and not _is_name_only(node)}


def _is_name_only(node: Node) -> bool:
    """Whether an identifier names a property, a function, a declaration or a loop's variable."""
    parent = node.parent
    assert parent is not None
    named = ("object_property", "call_expression", "for_statement")
    return parent.named_children[0] == node and (parent.type in named or parent.type.endswith("_declaration"))


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for each in node.children:
        yield from walk(each)


def text(node: Node) -> str:
    """Its source text."""
    assert node.text is not None
    return node.text.decode()


def body(declaration: Node) -> Node:
    """The object of a resource or module, also where it stands in a loop or under a condition."""
    return next(node for node in walk(declaration) if node.type == "object")


def child(node: Node, name: str) -> Node:
    """The value of an object's property."""
    return next(each for each in node.named_children if text(each.named_children[0]) == name).named_children[1]


def keys(node: Node) -> set[str]:
    """The names of an object's properties."""
    return {text(each.named_children[0]) for each in node.named_children if each.type == "object_property"}


def paths(node: Node, above: str = "") -> Iterator[str]:
    """The dotted names of all properties in an expression; nested resources, and objects' own keys, left out."""
    for each in node.named_children:
        if each.type != "object_property":
            yield from paths(each, above)
            continue
        name = each.named_children[0]
        if name.type != "identifier" or any(part.type == "resource_declaration" for part in each.children):
            continue
        yield f"{above}{text(name)}"
        for value in each.named_children[1:]:
            yield from paths(value, f"{above}{text(name)}.")


def property_names() -> dict[str, list[str]]:
    """All properties that the templates set, by resource type and version; app settings are none."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        for kind, node in Source.read(path).resources():
            found.setdefault(kind, set()).update(paths(node))
    return {kind: sorted(names) for kind, names in sorted(found.items()) if not kind.startswith(APP_SETTINGS)}


def app_settings() -> dict[str, str]:
    """The app settings that the templates set, and the source text of each value."""
    main, api = Source.read(INFRA / "main.bicep"), Source.read(INFRA / "app" / "api.bicep")
    passed = child(child(main.modules["./app/api.bicep"], "params"), "appSettings")
    config = next(node for kind, node in api.resources() if kind.startswith(APP_SETTINGS))
    merged = [
        node for union in (passed, child(config, "properties")) for node in walk(union) if node.type == "object"
    ]
    return {
        text(each.named_children[0]): text(each.named_children[1])
        for node in merged
        for each in node.named_children
        if each.type == "object_property"
    }


if __name__ == "__main__":
    TABLE.write_text(json.dumps(property_names(), indent=2) + "\n")
