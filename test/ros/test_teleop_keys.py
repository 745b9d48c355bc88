# SPDX-License-Identifier: Apache-2.0
"""ik_teleop: keys move the tool of a node that is stepped, and call its services."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from node_harness import Client, running
from small_arm import arm_urdf

from ik_node.ros.programs.teleop_keys import KEY_TIMEOUT, KEYS, SPEEDS, KeysNode


@pytest.fixture
def client() -> Iterator[Client]:
    with running(arm_urdf(), home=[0.3, 0.4, 0.5, 0.2, 0.3]) as client:
        yield client


@pytest.fixture
def keys(client: Client) -> Iterator[KeysNode]:
    keys = KeysNode(context=client.world.context)
    yield keys
    keys.close()


@pytest.mark.slow
@pytest.mark.parametrize('key', 'wsadrf')
def test_the_tool_moves_along_the_axis_of_a_key_only_while_it_is_held(client, keys, key):
    before = client.tool()[0]
    for _ in range(10):
        keys.press(key)
        client.run(KEY_TIMEOUT / 2)
    step = client.tool()[0] - before
    assert step @ np.array(KEYS[key][0]) > 0.9 * np.linalg.norm(step) > 0.01
    client.run(1.0)
    still = client.position()
    client.run(1.0)
    assert (client.position() == still).all()


@pytest.mark.slow
@pytest.mark.parametrize('count', [10, pytest.param(100, marks=pytest.mark.nightly)])
def test_a_key_that_is_let_go_stops_the_arm(client: Client, keys: KeysNode, count: int) -> None:
    """Terminals repeat a held key 25 times in a second, and tell nothing of its release."""
    rng, found = np.random.default_rng(count), []
    for k in range(count):
        for _ in range(int(rng.integers(10, 20))):
            client.run(0.04 * rng.uniform(0.8, 1.2))
            keys.press('sw'[k % 2])
        client.run(rng.uniform(0.0, 0.04))
        found.append(client.rest_time())  # from 0.08 m/s
    print(f'{count} times: at rest after {np.median(found):.2f} s, at most {max(found):.2f} s')
    assert np.median(found) < 0.25
    assert max(found) < 0.32  # where a joint moves at 1 rad/s, which takes 0.2 s to brake


@pytest.mark.slow
@pytest.mark.parametrize('gaps', [[0.09], [0.02, 0.06], [*4 * [0.001], 0.11]])
def test_a_slow_or_uneven_terminal_does_not_make_the_arm_stutter(client: Client, keys: KeysNode, gaps: list[float]):
    heard: list[TwistStamped] = []
    client.node.create_subscription(TwistStamped, 'ik_node/delta_twist_cmds', heard.append, 100)
    for k in range(30):
        keys.press('s')
        client.run(gaps[k % len(gaps)])
    assert all(one.twist.linear.x < 0.0 for one in heard)
    client.run(0.2)
    assert heard[-1].twist.linear.x == 0.0


@pytest.mark.slow
def test_plus_and_minus_set_the_speed(client, keys):
    heard: list[TwistStamped] = []
    client.node.create_subscription(TwistStamped, 'ik_node/delta_twist_cmds', heard.append, 10)

    def speed() -> float:
        keys.press('s')
        client.run(0.1)
        return -heard[-1].twist.linear.x

    assert speed() == SPEEDS[2]
    keys.press('+')
    assert speed() == SPEEDS[3]
    for _ in SPEEDS:
        keys.press('-')
    assert speed() == SPEEDS[0]


@pytest.mark.slow
def test_keys_call_services(client, keys):
    keys.press(' ')
    client.wait_said('stop')
    moved = client.position()
    keys.press('w')
    client.run(0.5)
    assert (client.position() == moved).all()
    keys.press('c')
    client.run(0.5)
    keys.press('h')
    client.wait(lambda: client.position() == pytest.approx([0.3, 0.4, 0.5, 0.2, 0.3]), 'home')


@pytest.mark.slow
def test_brackets_close_and_open_the_gripper_while_they_are_held(client, keys):
    client.run(0.2)
    for _ in range(10):
        keys.press(']')
        client.run(0.03)
    client.run(1.0)
    assert client.position('finger')[0] == pytest.approx(0.02)
    for _ in range(4):
        keys.press('[')
        client.run(0.03)
    client.run(1.0)
    assert client.position('finger')[0] == pytest.approx(0.012)
    for _ in range(30):
        keys.press('[')
    client.run(1.0)
    assert client.position('finger')[0] == 0.0


def test_without_a_node_it_says_so(client, keys, capsys):
    client.served.close()
    keys.press(' ')
    assert 'ik_node' in capsys.readouterr().out
