# SPDX-License-Identifier: Apache-2.0
"""Programs that command or serve the same arm know each other; the later one waits."""

import json
from contextlib import contextmanager
from dataclasses import asdict, replace

import pytest
from control_harness import Asked
from node_harness import running
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf
from std_msgs.msg import String
from std_srvs.srv import Trigger
from stepped import world

from ik_node.control.states import State
from ik_node.ros import neighbours
from ik_node.ros.neighbours import ARM, CARD_TIMEOUT, Card, Neighbours, conflict, read_card
from ik_node.ros.node import IkNode

FIRST = Card('1', ARM, '/ik_node', 'here', 11, 'one', since=1.0, takes=('/goal_pose',), commands=('/q',))
LATER = replace(FIRST, id='2', process=22, session='two', since=2.0)


@pytest.fixture
def meeting():
    """A program that hears the cards that a test gives it; its session."""
    with world() as here:
        node = Node('one_of_them', context=here.context)

        def meet(*cards, session='', **about):
            met = Neighbours(node, 'ik_goals', **about)
            met.own = replace(met.own, session=session)
            for card in cards:
                hear(met, card)
            return met

        yield meet
        node.destroy_node()


def hear(met, card):
    met._on_card(type('Message', (), {'data': json.dumps(asdict(card))}))


@pytest.mark.parametrize(
    ('change', 'conflicts'),
    [
        ({}, True),
        ({'since': 0.0}, False),  # inactive
        ({'takes': ()}, True),
        ({'takes': (), 'commands': ('/other',)}, False),
        ({'takes': (), 'joints': ('right',)}, True),  # a driver takes the commands of one
        ({'takes': (), 'joints': ('right',), 'commands': ('/joint_states',)}, False),  # a picture of two arms
        ({'takes': (), 'commands': (), 'reads': ('/q',)}, True),  # its measurements are our commands
        ({'takes': (), 'commands': (), 'reads': ('/p',)}, False),
    ],
)
def test_programs_with_the_same_job(change, conflicts):
    own = replace(FIRST, joints=('left',), commands=('/q', '/joint_states'))
    other = replace(LATER, joints=('left',))
    other = replace(other, **change)
    assert bool(conflict(own, other)) is conflicts
    assert bool(conflict(other, own)) is conflicts


@pytest.mark.parametrize(
    'text',
    [
        *('', '[]', '{}', 'null', '[' * 19_000, '{"id": 1}'),
        *(json.dumps({**asdict(FIRST), **wrong}) for wrong in ({'takes': [1]}, {'node': '/a b'}, {'node': ''})),
    ],
)
def test_what_is_no_card_is_ignored(text):
    assert read_card(text) is None
    assert read_card(json.dumps(asdict(FIRST))) == FIRST


@pytest.mark.slow
@pytest.mark.parametrize(
    ('session', 'arms', 'sent'),
    [
        ('', [], True),  # a solver of another package
        ('', [FIRST], True),  # started by hand
        ('', [FIRST, LATER], False),  # which one?
        ('', [FIRST, replace(LATER, waits=True)], True),
        ('one', [FIRST], True),
        ('one', [], False),  # its node is not there yet
        ('one', [replace(FIRST, waits=True)], False),
        ('one', [FIRST, replace(LATER, waits=True)], True),
        ('two', [FIRST], False),
        ('two', [FIRST, replace(LATER, waits=True)], False),
        ('two', [replace(FIRST, any_session=True)], True),
        ('two', [replace(FIRST, takes=('/elsewhere/goal_pose',)), LATER], True),
    ],
)
def test_goals_are_sent_to_the_arm_of_the_own_session(meeting, session, arms, sent):
    met = meeting(*arms, session=session, sends=['goal_pose'])
    assert (met.foreign() == '') is sent


@pytest.mark.slow
def test_a_program_that_was_killed_is_forgotten(meeting):
    met = meeting(FIRST, sends=['goal_pose'])
    assert met.arms == [FIRST]
    for heard in met._received.values():
        heard.at -= CARD_TIMEOUT
    assert met.arms == []


@pytest.mark.parametrize(('joints', 'refused'), [((), True), (('left', 'jaw'), True), (('right',), False)])
def test_the_driver_of_another_arm_refuses_nothing(meeting, joints, refused):
    driver = replace(FIRST, program='ik_servos', measures=('/q',), joints=joints, refuses='held')
    met = meeting(driver, reads=['q'], joints=('left', 'right'))
    assert bool(met.refusal(('left',))) is refused
    assert met.refusal(()) == 'held'
    hear(met, replace(driver, waits=True))
    assert met.refusal(()) == ''


def test_each_newcomer_is_named_once(meeting):
    met = meeting(LATER, since=1.5, takes=['goal_pose'])
    assert [str(LATER) in said for said in met.announce()] == [True]
    hear(met, LATER)
    assert met.announce() == []
    goals = replace(LATER, id='3', process=33, since=0.0, takes=(), sends=('/goal_pose',))
    hear(met, goals)
    assert [str(goals) in said for said in met.announce()] == [True]


@contextmanager
def node_in(here, *remappings):
    given = [Parameter(name, value=value) for name, value in PARAMETERS.items()]
    description = Parameter('robot_description', value=arm_urdf())
    node = IkNode(context=here.context, parameter_overrides=[*given, description], cli_args=[*remappings])
    here.drive(node)
    try:
        yield node, node._tools[0].own_controller
    finally:
        node.close()


@pytest.mark.slow
def test_the_second_node_waits_until_the_first_ends(monkeypatch):
    monkeypatch.setattr(neighbours, 'SETTLING', 1.0)
    with world() as here, node_in(here) as (first, one):
        here.wait(lambda: one.state is State.HOLDING, 'the first node')
        with node_in(here) as (_, other):
            here.wait(lambda: 'was started before' in other.condition()[1], 'the second one')
            assert other.state is State.WAITING
            assert one.state is State.HOLDING
            one.submit(Asked({'yaw': 1.0}))
            here.wait(lambda: one.snapshot().share > 0.2, 'a motion')
            first.deactivate()
            assert first._neighbours.own.since, 'while it brakes, it serves the arm'
            here.wait(lambda: other.state is State.HOLDING, 'its turn')
            assert one.state is State.INACTIVE


@pytest.mark.slow
def test_goals_of_its_session_wait_until_the_arm_is_measured():
    with running(arm_urdf(), ready=False, output='joint_trajectory') as client:
        client.run(3.0)
        assert client.served._neighbours.own.waits
        for _ in range(20):
            client.send('joint_states', client.joints(**dict.fromkeys(ARM_JOINTS, 0.3)))
            client.run(0.1)
        assert not client.served._neighbours.own.waits


def test_programs_that_the_middleware_knows_are_waited_for_until_they_say_what_they_do(meeting, monkeypatch):
    monkeypatch.setattr(neighbours, 'SETTLING', 1.0)
    met = meeting()
    met._node.create_publisher(String, neighbours.TOPIC, 1)
    settled = []
    for _ in range(round(neighbours.LATE)):
        met._beat()
        settled.append(met.settled)
    assert settled == [False] * (len(settled) - 1) + [True], 'not for ever: it may have been killed'
    met.search()
    met._beat()
    assert not met.settled, 'it may come at once'
    hear(met, LATER)
    met._beat()
    assert met.settled


def test_a_node_of_another_package_that_commands_the_arm_is_named(meeting):
    met = meeting(commands=['joint_commands'])
    met._node.create_publisher(JointState, 'joint_commands', 1)
    assert met.announce(real=True) == [], 'its own publisher'
    stranger = Node('stranger', context=met._node.context)
    stranger.create_publisher(JointState, 'joint_commands', 1)
    assert ['/stranger' in one for one in met.announce(real=True)] == [True]
    assert met.announce(real=True) == []
    stranger.destroy_node()


@pytest.mark.slow
def test_one_resume_ends_a_stop_and_a_hold_of_the_driver():
    real = ('-r', 'joint_states:=joint_commands', '-r', 'measured_joint_states:=joint_states')
    with world() as here:
        driver = Node('driver', context=here.context)
        states = driver.create_publisher(JointState, 'joint_states', 10)
        message = JointState(name=list(ARM_JOINTS), position=[0.0] * len(ARM_JOINTS))
        driver.create_timer(0.02, lambda: states.publish(message))
        met = Neighbours(driver, 'ik_servos', since=1.0, measures=['joint_states'], refuses='it is held')

        def clear(_, response):
            met.update(refuses='')
            response.success = True
            return response

        driver.create_service(Trigger, '~/clear', clear)
        asking = driver.create_client(Trigger, '/ik_node/resume')
        with node_in(here, '--ros-args', *real) as (node, arm):
            here.wait(lambda: arm.state is State.HOLDING, 'measurements')
            here.wait(lambda: arm.condition()[1] == 'it is held', 'the refusal')
            assert not node._tools[0].home()[0]
            arm.stop()
            answer = asking.call_async(Trigger.Request())
            here.wait(answer.done, 'the answer')
            assert answer.result().success, answer.result().message
            here.wait(lambda: arm.ready, 'the arm')
        driver.destroy_node()
