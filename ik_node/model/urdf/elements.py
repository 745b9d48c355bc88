# SPDX-License-Identifier: Apache-2.0
"""URDF text -> XML elements, safe to walk: no entities, no document type, bounded in size, xacro checked."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from lxml import etree

from ik_node.errors import ElementError, InputError, XacroError, XmlError, escaped, quoted

Element = Any  # lxml's elements come without types
LISTED = 20  # locations that a warning lists; the rest is counted


class Reading:
    """What reading one description has found besides the robot.

    faults: by joint name, a sentence on why no arm can contain this joint. sources: the <joint> elements by
    name.
    """

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        self.sources: dict[str, Element] = {}
        self._locations: dict[str, list[str]] = {}

    def note(self, matter: str, place: str) -> None:
        """Note one location, such as 'joint "a" (line 3)', of an issue that does not prevent reading."""
        self._locations.setdefault(matter, []).append(place)

    def place(self, joint: str, tag: str | None = None, attribute: str | None = None) -> str:
        """Return the location of a joint, or of the first <tag> in it, for a message."""
        source = self.sources[joint]
        found = None if tag is None else source.find(tag)
        return place(source if found is None else found, attribute)

    def warnings(self) -> tuple[str, ...]:
        """Return one sentence for each issue, with at most LISTED of its locations."""
        return tuple(
            f'{matter}: {", ".join(locations[:LISTED])}'
            + (f' and {len(locations) - LISTED} more' if len(locations) > LISTED else '')
            for matter, locations in self._locations.items()
        )


MAX_CHARACTERS = 8_000_000  # of one description: ten times the largest robots, and elements below 1 GB
SHOWN_MESSAGE = 200  # characters of the parser's message: it quotes names of any length
USED = ('link', 'joint', 'material', 'ik_node')  # children of <robot>
XACRO_HARMLESS = ('property', 'arg')  # left-over definitions: nothing is missing
EXPAND = 'expand it first (xacro FILE.xacro > FILE.urdf), or pass the .xacro file itself'

_BLANKS = re.compile(r'[\s\ufeff]*')
_DECLARATION = re.compile(r'\s*<\?xml\s')
_GOOD_DECLARATION = re.compile(r'\s*<\?xml\s+version\s*=')
_SKIPPED = {'<?': '?>', '<!--': '-->'}  # what may precede a document type

_REMEDIES = {
    'ERR_DOCUMENT_EMPTY': 'a URDF starts with <robot name="...">',
    'ERR_TAG_NAME_MISMATCH': 'close every element with its own end tag, innermost first',
    'ERR_TAG_NOT_FINISHED': 'close every element: the text ends too early',
    'ERR_DOCUMENT_END': 'everything belongs inside one <robot> element',
    'ERR_COMMENT_NOT_FINISHED': 'end the comment with "-->"',
    'ERR_HYPHEN_IN_COMMENT': 'XML allows no "--" inside a comment, nor "--->" at its end: write "==" instead',
    'ERR_ATTRIBUTE_REDEFINED': 'give each attribute once',
    'ERR_ATTRIBUTE_NOT_STARTED': 'put the value in quotes: name="value"',
    'ERR_ATTRIBUTE_NOT_FINISHED': 'close the quotes of the value',
    'ERR_ATTRIBUTE_WITHOUT_VALUE': 'give the attribute a value: name="value"',
    'ERR_SPACE_REQUIRED': 'write attributes as name="value" and end the tag with ">" or "/>"',
    'ERR_GT_REQUIRED': 'end the tag with ">"',
    'ERR_LT_IN_ATTRIBUTE': 'write "&lt;" for "<" in an attribute, or close the quotes before it',
    'ERR_UNDECLARED_ENTITY': 'write "&amp;" for "&"',
    'ERR_ENTITYREF_SEMICOL_MISSING': 'write "&amp;" for "&"',
    'ERR_NAME_REQUIRED': 'write "&amp;" for "&" and "&lt;" for "<" where no tag starts',
    'ERR_INVALID_CHAR': 'XML allows no control characters: remove it',
}
_RESOURCES = (
    'elements are nested more than 250 deep, or a text has more than ten million characters',
    'a URDF nests fewer than ten: remove elements that are nested by mistake, and large data',
)


def reject_doctype(text: str) -> None:
    """Raise XmlError if the text has a document type: it can declare entities that expand without bound."""
    # A loop, not one regular expression, which would keep a state for every blank and comment.
    at = _end_of_blanks(text, 0)
    while mark := next((mark for mark in _SKIPPED if text.startswith(mark, at)), None):
        end = text.find(_SKIPPED[mark], at + len(mark))
        if end < 0:
            return
        at = _end_of_blanks(text, end + len(_SKIPPED[mark]))
    if text.startswith('<!DOCTYPE', at):
        raise _doctype_error(text.count('\n', 0, at) + 1)


def _end_of_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _doctype_error(line: int) -> XmlError:
    return XmlError(
        f'<!DOCTYPE> (line {line}): a URDF must not have a document type or entities; remove it and '
        'replace entities by their text'
    )


def parse_xml(text: str, reading: Reading) -> Element:
    """Return the <robot> element of URDF text, without comments and default namespace, xacro checked.

    Raises InputError if text is not str, XmlError, also beyond MAX_CHARACTERS, XacroError, ElementError
    for another root.
    """
    if not isinstance(text, str):
        raise InputError(f'a URDF must be text (str), got {type(text).__name__}')
    check_size(len(text), 'the description')
    text = text.lstrip('\ufeff')
    if '<' not in text:
        start = text.strip()
        raise XmlError(
            f'line 1: {quoted(start)} is not XML: a URDF starts with <robot name="...">'
            + (' (to read a file use Arm.from_file)' if start.endswith(('.urdf', '.xacro')) else '')
            if start
            else 'the description is empty: a URDF starts with <robot name="...">'
        )
    reject_doctype(text)
    root = _parse(_without_declaration(text, reading))
    for element in root.iter(etree.Element):
        if element.prefix is None and element.tag.startswith('{'):
            element.tag = element.tag.rpartition('}')[2]
    if root.tag != 'robot':
        raise ElementError(
            f'the root element is <{tag_of(root)}> (line {root.sourceline}), not <robot>: {_root_remedy(root)}'
        )
    _check_xacro(root, reading)
    others = Counter(tag_of(child) for child in root if child.tag not in USED)
    for tag, count in others.items():
        if not tag.startswith('xacro:'):
            reading.note('ignored, not needed for kinematics', f'{count} <{tag}>')
    return root


def check_size(size: int, what: str) -> None:
    """Raise XmlError for a description of more than MAX_CHARACTERS."""
    if size > MAX_CHARACTERS:
        raise XmlError(
            f'{what} has {size:,} characters, at most {MAX_CHARACTERS:,} are allowed; '
            'remove what kinematics does not need, such as <gazebo>'
        )


def _without_declaration(text: str, reading: Reading) -> str:
    """Drop <?xml ...?>: the text is decoded already, and ROS allows any encoding and version in it."""
    start = _DECLARATION.match(text)
    end = text.find('?>', start.end()) if start else -1
    if end < 0:
        return text
    if not _GOOD_DECLARATION.match(text):
        reading.note('the XML declaration is misspelt, it should be <?xml version="1.0"?>', 'line 1')
    return '\n' * text.count('\n', 0, end) + text[end + 2 :]


def _parse(text: str) -> Element:
    """Parse without entities and network. Of malformed XML, only undeclared prefixes are accepted."""
    parser = etree.XMLParser(
        recover=True,
        encoding='utf-8',
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except UnicodeEncodeError as error:
        raise XmlError(f'malformed XML: character {error.start + 1} is half of a surrogate pair; remove it') from None
    except etree.XMLSyntaxError:
        root = None
    for entry in parser.error_log:
        if entry.level_name != 'WARNING' and entry.type_name != 'NS_ERR_UNDEFINED_NAMESPACE':
            raise XmlError(_malformed(entry, text))
    if root is None:
        raise XmlError('malformed XML: there is no element; a URDF starts with <robot name="...">')
    if root.getroottree().docinfo.internalDTD is not None:  # in case reject_doctype has missed it
        raise _doctype_error(1)
    return root


def _malformed(entry: Any, text: str) -> str:
    """Return what the parser found where, and a remedy."""
    source = _line(text, entry.line).strip()
    message, remedy = entry.message, _REMEDIES.get(entry.type_name)
    if source.startswith(('<<<<<<<', '=======', '>>>>>>>')):
        remedy = 'the file contains a merge conflict: resolve it'
    if entry.type_name == 'ERR_RESOURCE_LIMIT':  # the parser's message suggests one of its options
        message, remedy = _RESOURCES
    place = f'malformed XML at line {entry.line}, column {entry.column}, {quoted(source)}'
    return f'{place}: {escaped(message.strip(), SHOWN_MESSAGE)}' + (f'; {remedy}' if remedy else '')


def _line(text: str, number: int) -> str:
    """Return one line of text, counted from 1, without making a list of all."""
    start = 0
    for _ in range(number - 1):
        start = text.find('\n', start) + 1
        if not start:
            return ''
    end = text.find('\n', start)
    return text[start:] if end < 0 else text[start:end]


def tag_of(element: Element) -> str:
    """Return the tag as written, with its prefix."""
    name = element.tag.rpartition('}')[2]
    return escaped(f'{element.prefix}:{name}' if element.prefix else name)


def _root_remedy(root: Element) -> str:
    inner = next(root.iter('robot'), None)
    if inner is not None:
        return f'use the <robot> of line {inner.sourceline} as the root'
    return 'a URDF starts with <robot name="...">'


def _check_xacro(root: Element, reading: Reading) -> None:
    """Raise XacroError for unexpanded xacro that kinematics may need; mesh names are not needed."""
    for element in root.iter(etree.Element):
        uri, _, name = element.tag.rpartition('}')
        if name.startswith('xacro:') or 'xacro' in uri:
            name = name.removeprefix('xacro:')
            if name not in XACRO_HARMLESS:
                raise XacroError(f'<xacro:{escaped(name)}> (line {element.sourceline}) is unexpanded xacro: {EXPAND}')
            reading.note('left-over xacro definitions are ignored', place(element))
    # In Python lxml looks up each attribute of an element among all of them: quadratic.
    for found in root.xpath(UNEXPANDED):
        raise XacroError(f'{place(found.getparent(), found.attrname)} is unexpanded xacro{_old_xacro(root)}: {EXPAND}')


# XPath of the first attribute that is_unexpanded: of the root, and of what is used below it.
UNEXPANDED = (
    f'({" | ".join(("@*", *(f"{tag}//@*" for tag in USED)))})'
    "[contains(., '${') or contains(., '$(')][not(name() = 'filename' and name(..) = 'mesh')][1]"
)


def is_unexpanded(value: str) -> bool:
    """Whether the value of an attribute contains a xacro expression."""
    return '${' in value or '$(' in value


def _old_xacro(root: Element) -> str:
    """Describe the first definition without the prefix xacro:, which only xacro before ROS Jade accepted."""
    for element in root.iterchildren('property', 'macro', 'include'):
        return f', and {place(element)} lacks the prefix: write <xacro:{element.tag} ...>'
    return ''


def place(element: Element, attribute: str | None = None) -> str:
    """Return the location: '<limit lower="x"> of joint "a" (line 12)', or 'joint "a" (line 11)'."""
    line = f'(line {element.sourceline})'
    tag, parent = tag_of(element), element.getparent()
    name = element.get('name')
    if attribute is not None:
        described = f'<{tag} {attribute}={quoted(element.get(attribute) or "")}>'
    elif name and tag in ('joint', 'link'):
        return f'{tag} {quoted(name)} {line}'
    else:
        described = f'<{tag} name={quoted(name)}>' if name else f'<{tag}>'
    while parent is not None and parent.tag not in ('joint', 'link'):
        parent = parent.getparent()
    owner = '' if parent is None or not parent.get('name') else f' of {parent.tag} {quoted(parent.get("name"))}'
    return f'{described}{owner} {line}'


def named(root: Element, tag: str) -> dict[str, Element]:
    """Return the <tag> children of root by their names. Raises ElementError: no name, or a name twice."""
    found: dict[str, Element] = {}
    for element in root.iterchildren(tag):
        name = attribute_of(element, 'name')
        if name in found:
            raise ElementError(
                f'<{tag} name={quoted(name)}> (line {element.sourceline}): the name is already used by the '
                f'{tag} of line {found[name].sourceline}; every {tag} needs a unique name'
            )
        found[name] = element
    return found


def attribute_of(element: Element, attribute: str) -> str:
    """Return a required attribute. Raises ElementError if it is missing or empty."""
    value = element.get(attribute)
    if not value:
        raise ElementError(f'{place(element)} needs the attribute {attribute}="..."')
    return str(value)
