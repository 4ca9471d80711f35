"""A Galaxy tool as far as it can be had without Galaxy: macros, parameters, command, tests."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from Cheetah.Template import Template


class Flag(str):
    """A boolean parameter: its text is the one for true or false, its truth that of the box."""

    checked: bool

    def __new__(cls, param: Element, checked: bool) -> Flag:
        text = param.get("truevalue", "true") if checked else param.get("falsevalue", "false")
        flag = super().__new__(cls, text)
        flag.checked = checked
        return flag

    def __bool__(self) -> bool:
        return self.checked


class Group(dict):
    """A section or conditional; Cheetah reads ``$group.name`` from a mapping."""


def load(path: Path) -> Element:
    """Read a tool with its macros in their places."""
    tool = ElementTree.parse(path).getroot()
    macros: dict[str, Element] = {}
    tokens: dict[str, Element] = {}
    for name in tool.findall("macros/import"):
        for part in ElementTree.parse(path.parent / (name.text or "")).getroot():
            (tokens if part.tag == "token" else macros)[part.get("name", "")] = part
    _expand(tool, macros)
    texts = {name: token.text or "" for name, token in tokens.items()}
    for element in tool.iter():
        element.text = _fill(element.text, texts)
        for key, value in element.attrib.items():
            element.set(key, _fill(value, texts) or "")
    return tool


def _expand(element: Element, macros: Mapping[str, Element]) -> None:
    for place, child in reversed(list(enumerate(element))):
        if child.tag == "expand":
            element.remove(child)
            body = copy.deepcopy(macros[child.get("macro", "")])
            _yield(body, list(child))
            for part in reversed(list(body)):
                element.insert(place, part)
    for child in element:
        _expand(child, macros)


def _yield(element: Element, given: list[Element]) -> None:
    for place, child in reversed(list(enumerate(element))):
        if child.tag == "yield":
            element.remove(child)
            for part in reversed(given):
                element.insert(place, part)
        else:
            _yield(child, given)


def _fill(text: str | None, tokens: Mapping[str, str]) -> str | None:
    return text and re.sub(r"@[A-Z_]+@", lambda found: tokens.get(found[0], found[0]), text)


def name_of(param: Element) -> str:
    """The name of a parameter; Galaxy makes one from ``argument`` where none is given."""
    return param.get("name") or param.get("argument", "").lstrip("-").replace("-", "_")


def values(inputs: Iterable[Element], given: Element | None, data: Path) -> Group:
    """The parameters of a run: what a test gives, else the defaults."""
    group = Group()
    for part in inputs:
        inner = None if given is None else given.find(f"{part.tag}[@name='{part.get('name')}']")
        if part.tag == "param":
            group[name_of(part)] = _value(part, given, data)
        elif part.tag == "section":
            group[part.get("name")] = values(part, inner, data)
        elif part.tag == "conditional":
            chosen = values(part.findall("param"), inner, data)
            case = part.findall(f"when[@value='{next(iter(chosen.values()))}']/param")
            group[part.get("name")] = Group(chosen | values(case, inner, data))
    return group


def _value(param: Element, given: Element | None, data: Path) -> Any:
    test = None if given is None else given.find(f"param[@name='{name_of(param)}']")
    text = None if test is None else test.get("value")
    if param.get("type") == "boolean":
        return Flag(param, (text or param.get("checked")) == "true")
    if param.get("type") == "data":
        return str(data / text) if text else ""
    if param.get("type") == "select":
        selected = [o.get("value") for o in param.findall("option") if o.get("selected") == "true"]
        return text or selected[0]
    return text if text is not None else param.get("value", "")


def command(tool: Element, group: Group, outputs: Mapping[str, str]) -> str:
    """The shell command of a run."""
    text = str(Template(tool.findtext("command"), searchList=[{**group, **outputs}]))
    return " ".join(text.split())


def outputs(tool: Element, group: Group) -> list[Element]:
    """The outputs of a run: those whose filter holds."""
    return [
        data
        for data in tool.findall("outputs/data")
        if all(eval(rule.text or "", {}, group) for rule in data.findall("filter"))
    ]


def check(path: Path, assertions: Element) -> None:
    """Hold a file against ``assert_contents``."""
    raw = path.read_bytes()
    lines = raw.decode(errors="replace").splitlines()
    for rule in assertions:
        text = rule.get("text") or rule.get("line") or rule.get("expression") or rule.get("min")
        holds = {
            "has_text": lambda text: any(text in line for line in lines),
            "not_has_text": lambda text: not any(text in line for line in lines),
            "has_line": lambda text: text in lines,
            "has_line_matching": lambda text: any(re.fullmatch(text, line) for line in lines),
            "has_size": lambda text: len(raw) >= int(text),
        }[rule.tag]
        assert holds(text), f"{path.name}: {rule.tag} {text!r}"
