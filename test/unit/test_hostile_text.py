# SPDX-License-Identifier: Apache-2.0
"""Descriptions from a topic may be anything: none takes much memory, smuggles entities in or fills a log."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hostile import GOOD, broken

from ik_node.errors import ChainError, UrdfError, XmlError
from ik_node.model.default_tip import default_tip
from ik_node.model.urdf.elements import MOST_CHARACTERS
from ik_node.model.urdf.reader import load_description, read_urdf

MEMORY = 700_000_000  # bytes of address space that a reader may take, of which Python and numpy take half
READER = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
from ik_node.errors import UrdfError
from ik_node.model.urdf.reader import read_urdf
for text in sys.argv[1:]:
    try:
        print(read_urdf(eval(text)).name)
    except UrdfError as error:
        print(type(error).__name__)
"""
SMALL = '\'<robot name="small"><link name="a"/>%s</robot>\''


TEXTS = [
    (f"' ' * 7_900_000 + {SMALL} % ''", 'small'),
    (f"'<!-- -->' * 900_000 + {SMALL} % ''", 'small'),
    (f"'<?a?>' * 1_000_000 + {SMALL} % ''", 'small'),
    (f"'<?xml ' + 'a' * 7_900_000 + '?>' + {SMALL} % ''", 'small'),
    (f"{SMALL} % ('<gazebo/>' * 800_000)", 'small'),
    (f"{SMALL} % ('<a:b/>' * 1_300_000)", 'small'),
    (f"'\\n' * 7_900_000 + {SMALL} % '<'", 'XmlError'),
    ("' ' * 20_000_000", 'XmlError'),
    (f"{SMALL} % ('<gazebo/>' * 5_000_000)", 'XmlError'),
]


@pytest.mark.slow
def test_no_text_takes_much_memory() -> None:
    texts, outcomes = zip(*TEXTS, strict=True)
    result = subprocess.run(
        [sys.executable, '-c', READER, *texts], capture_output=True, text=True, check=False, timeout=120
    )
    assert (tuple(result.stdout.split()), result.stderr) == (outcomes, '')


def test_what_is_too_long_is_rejected_with_both_lengths(tmp_path) -> None:
    text = GOOD + ' ' * MOST_CHARACTERS
    with pytest.raises(XmlError, match=rf'has {len(text):,} characters, at most 8,000,000 are allowed'):
        read_urdf(text)
    assert read_urdf(text[:MOST_CHARACTERS]).name == 'arm'
    (tmp_path / 'arm.urdf').write_text(text)
    with pytest.raises(XmlError, match=r'arm\.urdf: the file has .* at most 8,000,000'):
        load_description(tmp_path / 'arm.urdf')


@pytest.mark.parametrize('before', ['\ufeff', '\ufeff\ufeff', '\ufeff \ufeff\n', ' \ufeff<!-- -->\ufeff'])
def test_byte_order_marks_hide_no_document_type(before: str) -> None:
    text = broken(('name="arm"', 'name="&e;"'))
    with pytest.raises(XmlError, match=r'<!DOCTYPE> \(line \d\)'):
        read_urdf(f'{before}<!DOCTYPE robot [<!ENTITY e "hidden">]>{text}')


def test_byte_order_marks_alone_do_no_harm() -> None:
    assert read_urdf('\ufeff\ufeff' + GOOD).name == 'arm'


LONG = 'n' * 10_000
NAMES = [LONG, 'a&#10;b', 'a&#9;b', '\u202e\u2028', '&quot;&amp;&lt;']


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize(
    'given',
    [
        *('name="shoulder"', 'type="revolute"', 'link="base"', 'link="tool"', 'xyz="0 0 0.1"', 'lower="-1"'),
        *('xyz="0 1 0"', 'joint="wrist"', 'multiplier="0.01"', 'name="finger"', 'name="arm"'),
    ],
)
def test_every_sentence_is_one_short_line(given: str, name: str) -> None:
    """Names may be of any length and hold any character that XML allows: errors and warnings quote them."""
    attribute = given.partition('=')[0]
    sentences = []
    try:
        robot = read_urdf(broken((given, f'{attribute}="{name}"')))
    except UrdfError as error:
        sentences.append(str(error))
    else:
        sentences += robot.warnings
        for link in robot.links:
            try:
                robot.chain(link, 'upper')
            except ChainError as error:
                sentences.append(str(error))
        sentences.append(default_tip(robot).note or '')
    for sentence in sentences:
        assert sentence == '' or sentence.isprintable(), sentence
        assert len(sentence) < 1500, sentence


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (
            GOOD.replace('"tool"', f'"{LONG}" name="x"'),
            ['line 4', '... (10024 characters)', 'each attribute once'],
        ),
        (GOOD.replace('"tool"', '"to\0ol"'), ['line 4', r'"<link name="to\x00ol"/>"']),
        (GOOD.replace('"tool"', '"to\x07ol"'), ['line 4', r'to\x07ol', 'no control characters: remove it']),
        (f'<robot name="a"><{LONG}></robot>', ['line 1', 'close every element']),
        ('\x1b[31m' + LONG, [r'"\x1b[31mnnn', 'is not XML']),
        (GOOD.replace('"tool"', 'tool'), ['line 4', 'put the value in quotes: name="value"']),
        (GOOD.replace('name="tool"', 'name'), ['line 4', 'name="value"']),
        (GOOD.replace('"tool"', '"a & b"'), ['line 4', 'write "&amp;" for "&"']),
        (GOOD.replace('<link name="tool"/>', '<!-- '), ['not terminated', 'end the comment with "-->"']),
    ],
)
def test_malformed_text_is_quoted_on_one_line(text: str, words: list[str]) -> None:
    with pytest.raises(XmlError) as caught:
        read_urdf(text)
    said = str(caught.value)
    assert said.isprintable(), said
    assert len(said) < 600
    assert [word for word in words if word not in said] == [], said
    assert 'correct this place' not in said


@pytest.mark.parametrize('comment', ['<!-- a -- b -->', '<!------>', '<!-- ---- a ---- -->'])
def test_dashes_in_a_comment_are_an_error_that_says_so(comment: str) -> None:
    with pytest.raises(XmlError, match=r'line 2, .*; XML allows no "--" inside a comment'):
        read_urdf(broken(('<link name="base"/>', f'{comment}<link name="base"/>')))


def test_a_comment_that_ends_in_three_dashes_swallows_nothing_silently() -> None:
    with pytest.raises(XmlError, match=r'line 2, .*nor "--->" at its end'):
        read_urdf(broken(('<link name="base"/>', '<!-- a ---><link name="base"/><!-- b -->')))
