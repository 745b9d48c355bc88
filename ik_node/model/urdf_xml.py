"""URDF text -> checked XML elements: everything that can be said before numbers mean anything."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from lxml import etree

from ik_node.errors import LARGEST, ElementError, InputError, XacroError, XmlError, listed

Element = Any  # lxml's elements come without types

JOINT_TYPES = ('revolute', 'continuous', 'prismatic', 'fixed', 'planar', 'floating')
XACRO_HARMLESS = ('property', 'arg')  # definitions: nothing is missing where they were left over
EXPAND = 'expand it first (xacro FILE.xacro > FILE.urdf), or give the .xacro file itself'

# The text is decoded already, so the declaration has nothing more to say. Dropping it admits what the
# readers of ROS admit: an encoding in it, blanks before it, a misspelt version.
_DECLARATION = re.compile(r'\s*<\?xml\s(?:(?!\?>).)*\?>', re.DOTALL)
_GOOD_DECLARATION = re.compile(r'\s*<\?xml\s+version\s*=')
_DOCTYPE = re.compile(r'(?:\s|<\?(?:(?!\?>).)*\?>|<!--(?:(?!-->).)*-->)*<!DOCTYPE', re.DOTALL)

_REMEDIES = {
    'ERR_DOCUMENT_EMPTY': 'a URDF starts with <robot name="...">',
    'ERR_TAG_NAME_MISMATCH': 'close every element with its own end tag, innermost first',
    'ERR_TAG_NOT_FINISHED': 'close every element: the text ends too early',
    'ERR_DOCUMENT_END': 'everything belongs inside one <robot> element',
    'ERR_ATTRIBUTE_REDEFINED': 'give each attribute once',
    'ERR_SPACE_REQUIRED': 'write attributes as name="value" and end the tag with ">" or "/>"',
    'ERR_GT_REQUIRED': 'end the tag with ">"',
    'ERR_LT_IN_ATTRIBUTE': 'write "&lt;" for "<" in an attribute, or close the quotes before it',
    'ERR_UNDECLARED_ENTITY': 'write "&amp;" for "&"',
}

_RESOURCES = (
    'elements are nested more than 250 deep, or a text in it has more than ten million characters',
    'a URDF nests fewer than ten: take out what is nested by mistake, and large data',
)


class Notes:
    """What is untidy, gathered by matter and told in one sentence each."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}

    def add(self, matter: str, place: str) -> None:
        """Note one place, such as 'joint "a" (line 3)', where the matter was met."""
        self._places.setdefault(matter, []).append(place)

    def sentences(self, shown: int = 20) -> tuple[str, ...]:
        """Return one sentence for each matter, with at most so many of its places."""
        return tuple(
            f'{matter}: {", ".join(places[:shown])}'
            + (f' and {len(places) - shown} more' if len(places) > shown else '')
            for matter, places in self._places.items()
        )


def refuse_doctype(text: str) -> None:
    """Raise XmlError if the text has a document type: entities are declared there, and bombs made of them."""
    if match := _DOCTYPE.match(text):
        line = text.count('\n', 0, match.end()) + 1
        raise XmlError(
            f'<!DOCTYPE> (line {line}): a URDF has no document type and no entities; remove it and write '
            'out what its entities stand for'
        )


def parse_xml(text: str, notes: Notes) -> Element:
    """Return the <robot> element of URDF text, without comments and default namespace, xacro checked.

    Raises InputError if text is no str, XmlError, XacroError, ElementError for another root.
    """
    if not isinstance(text, str):
        raise InputError(f'a URDF must be text (str), got {type(text).__name__}')
    text = text.removeprefix('\ufeff')
    if '<' not in text:
        shown = text.strip()[:80]
        raise XmlError(
            f'line 1: "{shown}" is no XML: a URDF starts with <robot name="...">'
            + (' (to read a file use Arm.from_file)' if shown.endswith(('.urdf', '.xacro')) else '')
            if shown
            else 'the description is empty: a URDF starts with <robot name="...">'
        )
    refuse_doctype(text)
    root = _parse(_without_declaration(text, notes))
    for element in root.iter(etree.Element):
        if element.prefix is None and element.tag.startswith('{'):
            element.tag = element.tag.rpartition('}')[2]
    if root.tag != 'robot':
        raise ElementError(
            f'the root element is <{_tag(root)}> (line {root.sourceline}), {_root_remedy(root)}'
        )
    _check_xacro(root, notes)
    others = Counter(_tag(child) for child in root if child.tag not in ('link', 'joint', 'material'))
    for tag, count in others.items():
        if not tag.startswith('xacro:'):
            notes.add('ignored, because kinematics needs none of it', f'{count} <{tag}>')
    return root


def _without_declaration(text: str, notes: Notes) -> str:
    if match := _DECLARATION.match(text):
        if not _GOOD_DECLARATION.match(text):
            notes.add('the XML declaration is misspelt, <?xml version="1.0"?> would be right', 'line 1')
        text = '\n' * match.group().count('\n') + text[match.end() :]
    return text


def _parse(text: str) -> Element:
    """Parse without entities and network. Of all that is malformed only undeclared prefixes pass."""
    parser = etree.XMLParser(
        recover=True,
        encoding='utf-8',
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except UnicodeEncodeError as error:
        raise XmlError(f'malformed XML: {error}') from None
    except etree.XMLSyntaxError:
        root = None
    for entry in parser.error_log:
        if entry.level_name == 'WARNING' or entry.type_name == 'NS_ERR_UNDEFINED_NAMESPACE':
            continue
        lines = text.split('\n')
        source = lines[entry.line - 1].strip()[:80] if 0 < entry.line <= len(lines) else ''
        remedy = _REMEDIES.get(entry.type_name, 'correct this place')
        if source.startswith(('<<<<<<<', '=======', '>>>>>>>')):
            remedy = 'a merge conflict was left in the file: settle it'
        said = entry.message
        if entry.type_name == 'ERR_RESOURCE_LIMIT':  # in the parser's words an option of its own would help
            said, remedy = _RESOURCES
        raise XmlError(
            f'malformed XML at line {entry.line}, column {entry.column}, "{source}": {said}; {remedy}'
        )
    if root is None:
        raise XmlError('malformed XML: there is no element; a URDF starts with <robot name="...">')
    return root


def _tag(element: Element) -> str:
    """Return the tag as written, with its prefix."""
    name = element.tag.rpartition('}')[2]
    return f'{element.prefix}:{name}' if element.prefix else name


def _root_remedy(root: Element) -> str:
    inner = next(root.iter('robot'), None)
    if inner is not None:
        return f'not <robot>: take the <robot> of line {inner.sourceline} out of it'
    return 'not <robot>: a URDF starts with <robot name="...">'


def _check_xacro(root: Element, notes: Notes) -> None:
    for element in root.iter(etree.Element):
        uri, _, name = element.tag.rpartition('}')
        if name.startswith('xacro:') or 'xacro' in uri:
            name = name.removeprefix('xacro:')
            if name not in XACRO_HARMLESS:
                raise XacroError(f'<xacro:{name}> (line {element.sourceline}) is unexpanded xacro: {EXPAND}')
            notes.add('xacro definitions were left over and are ignored', place(element))
    for child in (root, *root.iterchildren('link', 'joint', 'material')):
        for element in (child,) if child is root else child.iter(etree.Element):
            for attribute, value in element.attrib.items():
                if '${' in value or '$(' in value:
                    raise XacroError(f'{place(element, attribute)} is unexpanded xacro: {EXPAND}')


def place(element: Element, attribute: str | None = None) -> str:
    """Return where something is: '<limit lower="x"> of joint "a" (line 12)', or 'joint "a" (line 11)'."""
    line = f'(line {element.sourceline})'
    tag, parent = _tag(element), element.getparent()
    name = element.get('name')
    if attribute is not None:
        shown = f'<{tag} {attribute}="{element.get(attribute)}">'
    elif name and tag in ('joint', 'link'):
        return f'{tag} "{name}" {line}'
    else:
        shown = f'<{tag} name="{name}">' if name else f'<{tag}>'
    while parent is not None and parent.tag not in ('joint', 'link'):
        parent = parent.getparent()
    owner = '' if parent is None or not parent.get('name') else f' of {parent.tag} "{parent.get("name")}"'
    return f'{shown}{owner} {line}'


def named(root: Element, tag: str) -> dict[str, Element]:
    """Return the <tag> children of root by their names. Raises ElementError: no name, or a name twice."""
    found: dict[str, Element] = {}
    for element in root.iterchildren(tag):
        name = attribute_of(element, 'name')
        if name in found:
            raise ElementError(
                f'<{tag} name="{name}"> (line {element.sourceline}): the name is taken by the {tag} of line '
                f'{found[name].sourceline}; every {tag} needs a name of its own'
            )
        found[name] = element
    return found


def attribute_of(element: Element, attribute: str) -> str:
    """Return an attribute that must be there and not empty, else raise ElementError."""
    value = element.get(attribute)
    if not value:
        raise ElementError(f'{place(element)} needs the attribute {attribute}="..."')
    return str(value)


def only_child(joint: Element, tag: str, notes: Notes) -> Element | None:
    """Return the first <tag> in a joint or None; more of them are noted."""
    children = joint.findall(tag)
    if len(children) > 1:
        notes.add(f'<{tag}> is given more than once and the first counts', place(joint))
    return children[0] if children else None


def check_joint(joint: Element, links: dict[str, Element], notes: Notes) -> None:
    """Raise ElementError unless type, parent and child of a <joint> are there and known."""
    kind = attribute_of(joint, 'type')
    if kind not in JOINT_TYPES:
        raise ElementError(
            f'{place(joint, "type")}, joint "{joint.get("name")}": there is no such type; '
            f'types: {listed(JOINT_TYPES, kind.strip().lower())}'
        )
    ends = []
    for tag in ('parent', 'child'):
        end = only_child(joint, tag, notes)
        if end is None:
            raise ElementError(f'{place(joint)} needs <{tag} link="...">')
        link = attribute_of(end, 'link')
        if link not in links:
            raise ElementError(f'{place(end, "link")}: there is no such link; links: {listed(links, link)}')
        ends.append(link)
    if ends[0] == ends[1]:
        raise ElementError(
            f'{place(joint)} joins link "{ends[0]}" to itself; parent and child must be two links'
        )


def numbers(element: Element, attribute: str, count: int, finite: bool = True) -> list[float] | None:
    """Return the numbers of an attribute, None if it is absent.

    Raises ElementError unless there are count of them, finite and below LARGEST if finite is asked.
    """
    text = element.get(attribute)
    if text is None:
        return None
    wanted = 'one number' if count == 1 else f'{count} numbers separated by blanks'
    xyz = 'xyz="0 0 1"' if element.tag == 'axis' else 'xyz="0 0 0.1"'
    example = {'xyz': xyz, 'rpy': 'rpy="0 0 1.5708"'}.get(attribute, f'{attribute}="1.5"')
    words = text.split()
    values = []
    for word in words:
        try:
            values.append(float('' if '_' in word else word))
        except ValueError:
            raise ElementError(
                f'{place(element, attribute)}: "{word}" is no number; give {wanted}, such as {example}'
            ) from None
    if len(values) != count:
        raise ElementError(
            f'{place(element, attribute)}: got {len(values)} numbers; give {wanted}, such as {example}'
        )
    if finite and not all(abs(value) <= LARGEST for value in values):
        raise ElementError(
            f'{place(element, attribute)}: NaN, infinite or beyond {LARGEST:g}; give {wanted} that '
            f'{"is" if count == 1 else "are"} finite, such as {example}'
        )
    return values
