# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to a description, it is read as a sound robot or rejected with UrdfError."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from small_arm import GOOD

from ik_node.errors import ChainError, UrdfError
from ik_node.model.arm import default_tip
from ik_node.model.urdf.reader import read_urdf

pytestmark = pytest.mark.slow

RICH = GOOD.replace(
    '</robot>',
    """  <link name="cart"/>
  <link name="wheel"/>
  <link name="lamp">
    <visual><geometry><mesh filename="package://none/a.stl" scale="1 1 1"/></geometry></visual></link>
  <joint name="rail" type="planar"><parent link="base"/><child link="cart"/><axis xyz="0 0 1"/></joint>
  <joint name="roll" type="continuous"><parent link="cart"/><child link="wheel"/>
    <axis xyz="0 0.6 0.8"/><limit velocity="4" effort="1"/></joint>
  <joint name="glue" type="fixed"><parent link="tool"/><child link="lamp"/></joint>
  <gazebo reference="tool"/>
  <transmission name="t"><joint name="wrist"/></transmission>
</robot>""",
)
WORDS = [
    'nan', '-inf', 'inf', '1e400', '-1e308', '1e-320', '0', '-0', '1', '1e16', '-3', '', ' ', '1_0', '0x10',
    '\u0663',
    '0 0 0', '0 0 1', 'nan nan nan', '1e308 1e308 1e308', '1e-200 0 0', '1 1', '0 0 0 0', '${x}', '$(find x)',
    'base', 'upper', 'tool', 'finger', 'cart', 'shoulder', 'wrist', 'jaw', 'rail', 'glue', 'lost',
    'revolute', 'continuous', 'prismatic', 'fixed', 'planar', 'floating', 'hinge', 'package://', '/none', '://',
]  # fmt: skip
TAGS = ['link', 'joint', 'parent', 'child', 'origin', 'axis', 'limit', 'mimic', 'robot', 'gazebo', 'xacro']
SCRAPS = [
    'nan',
    '<',
    '>',
    '"',
    '&',
    '&#0;',
    '&x;',
    '/',
    '<!--',
    ']]>',
    '<?xml?>',
    '<a:b/>',
    '\0',
    '\ud800',
    '\n',
]

edits = st.tuples(
    st.sampled_from(['set', 'set', 'set', 'remove attribute', 'remove', 'copy', 'move', 'rename']),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.sampled_from(WORDS),
)
cuts = st.tuples(st.integers(0, len(RICH)), st.integers(0, 30), st.sampled_from(['', *SCRAPS, *WORDS]))


def edited(changes):
    """Return RICH after changes to its elements: what is done, where, and with which word."""
    root = etree.fromstring(RICH)
    for what, first, second, word in changes:
        every = list(root.iter())
        element, other = every[first % len(every)], every[second % len(every)]
        names = sorted(element.attrib) or ['name']
        name = names[second % len(names)]
        if what == 'set':
            element.set(name, word)
        elif what == 'remove attribute':
            element.attrib.pop(name, None)
        elif what == 'rename':
            element.tag = TAGS[second % len(TAGS)]
        elif element is not root and what == 'remove':
            element.getparent().remove(element)
        elif element is not root and what == 'copy':
            element.getparent().append(etree.fromstring(etree.tostring(element)))
        elif element is not root and what == 'move' and element not in (other, *other.iterancestors()):
            other.append(element)
    return etree.tostring(root, encoding='unicode')


def check(text):
    """Read the text and ask everything of the robot; return whether it was read."""
    try:
        robot = read_urdf(text)
    except UrdfError as error:
        robot, sentences = None, [str(error)]
    else:
        sentences = list(robot.warnings)
    assert all(sentence.isprintable() and len(sentence) < 5000 for sentence in sentences)
    if robot is None:
        return False
    for joint in robot.joints.values():
        assert joint.lower <= joint.upper
        assert math.isclose(float(np.linalg.norm(joint.axis)), 1.0, abs_tol=1e-12)
        assert 0.0 < joint.velocity < math.inf
    values = robot.joint_values({joint.name: 0.3 for joint in robot.movable})
    assert all(map(math.isfinite, values.values()))
    for link in robot.links:
        pose = robot.link_pose(link, values)
        assert np.isfinite(pose).all()
        np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-9)
        with contextlib.suppress(ChainError):
            for joint in robot.chain(link):
                assert joint.movable or joint.type == 'fixed'
                assert joint.type == 'fixed' or robot.joints[robot.driver(joint.name).joint].movable
    with contextlib.suppress(ChainError):
        assert default_tip(robot).link in robot.links
    return True


bounded = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@bounded
@given(st.lists(edits, min_size=1, max_size=4))
def test_edited_elements(changes):
    check(edited(changes))


@bounded
@given(st.lists(cuts, min_size=1, max_size=4))
def test_cut_text(changes):
    text = RICH
    for start, length, scrap in changes:
        text = text[:start] + scrap + text[start + length :]
    check(text)


def test_each_attribute_given_some_words():
    """Every attribute in turn gets every tenth word; some of it must be read, some rejected."""
    outcomes, number = [], 0
    for index, element in enumerate(etree.fromstring(RICH).iter()):
        for position in range(len(element.attrib)):
            number += 1
            outcomes += [check(edited([('set', index, position, word)])) for word in WORDS[number % 10 :: 10]]
    assert 50 < sum(outcomes) < len(outcomes) - 50
