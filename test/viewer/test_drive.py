# SPDX-License-Identifier: Apache-2.0
"""The sticks of the page: they move the tool while they are held, and nothing late, foreign or odd does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from node_harness import Client, running
from rclpy.node import Node
from small_arm import arm_urdf

from ik_node.steady import steady
from ik_node.viewer.drive import LATE, SILENT, Drive

pytestmark = pytest.mark.slow

PERIOD = 0.04  # [s] between two messages
HERE = 500.0  # [s] by which the clock of the page is ahead


@pytest.fixture
def client() -> Iterator[Client]:
    with running(arm_urdf(), home=[0.3, 0.4, 0.5, 0.2, 0.3]) as client:
        yield client


@pytest.fixture
def drive(client: Client) -> Iterator[Drive]:
    node = Node('ik_viewer', context=client.world.context)
    yield Drive(node)
    node.destroy_node()


def message(page: str = 'a', delay: float = 0.0, **values: float) -> str:
    axes = {**dict.fromkeys(('x', 'y', 'z', 'yaw', 'grip'), 0.0), **values}
    return '&'.join([f'page={page}', f'time={steady() + HERE - delay:.3f}', *(f'{k}={v}' for k, v in axes.items())])


def held(client: Client, drive: Drive, count: int, **values: float) -> None:
    for _ in range(count):
        assert drive.take(message(**values)) == ''
        client.run(PERIOD)


@pytest.mark.parametrize(('axis', 'way'), [('x', (-1, 0, 0)), ('y', (0, 1, 0)), ('z', (0, 0, -1))])
def test_a_stick_moves_the_tool_while_it_is_held(client: Client, drive: Drive, axis: str, way: tuple[int, ...]):
    before = client.tool()[0]
    held(client, drive, 15, **{axis: 0.3 * sum(way)})
    step = client.tool()[0] - before
    assert step @ np.array(way) > 0.9 * np.linalg.norm(step) > 0.01


@pytest.mark.parametrize('count', [10, pytest.param(100, marks=pytest.mark.nightly)])
@pytest.mark.parametrize('released', [True, False])
def test_let_go_or_lost_the_arm_stops(client: Client, drive: Drive, released: bool, count: int):
    """A released stick sends zero; without any message ik_node brakes after incoming_command_timeout, 0.1 s."""
    rng, found = np.random.default_rng(count), []
    for k in range(count):
        held(client, drive, int(rng.integers(4, 16)), x=-0.3 if k % 2 else 0.3)
        client.run(rng.uniform(0.0, PERIOD))
        if released:
            assert drive.take(message()) == ''
        found.append(client.rest_time())  # from 0.1 m/s
    print(f'{count} times, released {released}: at rest after {np.median(found):.2f} s, at most {max(found):.2f} s')
    assert max(found) < (0.2 if released else 0.25)


def test_messages_that_waited_somewhere_move_nothing(client: Client, drive: Drive):
    held(client, drive, 1)
    rests = client.wait_still()
    for k in range(20):
        assert 'slow' in drive.take(message(delay=LATE + 0.01 * (k + 1), x=-0.3))
        client.run(PERIOD)
    assert (client.position() == rests).all()
    assert drive.take(message(delay=0.9 * LATE, x=-0.3)) == ''


@pytest.mark.parametrize('drift', [-3e-4, 3e-4])
def test_a_page_may_stay_open_although_its_clock_drifts(drive: Drive, monkeypatch: pytest.MonkeyPatch, drift: float):
    query = message(x=-0.3).split('&x=')[1]
    for time in np.arange(0.0, 3600.0, 2.0):
        monkeypatch.setattr('ik_node.viewer.drive.steady', lambda now=time: now)
        sent = (1.0 + drift) * time
        assert drive.take(f'page=a&time={sent}') == ''
    assert drive.take(f'page=a&time={sent}&x={query}') == ''
    assert 'slow' in drive.take(f'page=a&time={sent - LATE - 0.01}&x={query}')


def test_one_page_drives_at_a_time(client: Client, drive: Drive):
    held(client, drive, 3, x=-0.3)
    assert drive.take(message('b', y=0.3)) == 'another page moves the arm'
    client.run(SILENT)
    assert drive.take(message('b', y=0.3)) == ''
    assert drive.take(message('a', y=0.3)) == 'another page moves the arm'


def test_an_arm_of_another_session_is_not_moved(client: Client, drive: Drive):
    rests = client.wait_still()
    drive.refused = 'it belongs to another session'
    assert drive.take(message(x=-0.3)) == drive.refused
    client.run(0.5)
    assert (client.position() == rests).all()


def test_the_gripper_moves_while_its_button_is_held(client: Client, drive: Drive):
    client.run(0.2)
    held(client, drive, 10, grip=1.0)
    client.run(1.0)
    part = client.position('finger')[0]
    assert 0.005 < part < 0.03
    held(client, drive, 60, grip=-1.0)
    client.run(1.0)
    assert client.position('finger')[0] == 0.0


@pytest.mark.parametrize(
    'query',
    [
        '',
        'page=a',
        'time=1',
        'page=a&time=nan&x=0&y=0&z=0&yaw=0&grip=0',
        'page=a&time=1&x=0.3',
        'page=a&time=1&x=2&y=0&z=0&yaw=0&grip=0',
        'page=a&time=1&x=nan&y=0&z=0&yaw=0&grip=0',
        'page=a&time=1&x=inf&y=0&z=0&yaw=0&grip=0',
        'page=a&time=1&x=a&y=0&z=0&yaw=0&grip=0',
        f'page={"a" * 41}&time=1',
        'page=a&time=1&x=0&y=0&z=0&yaw=0&grip=0&more=1',
    ],
)
def test_odd_messages_move_nothing(client: Client, drive: Drive, query: str):
    rests = client.wait_still()
    assert drive.take(query)
    client.run(0.3)
    assert (client.position() == rests).all()


def test_the_time_of_a_page_moves_nothing(drive: Drive):
    assert drive.take(f'page=a&time={steady():.3f}') == ''
    for number in range(100):
        drive.take(f'page={number}&time=1')
    assert len(drive._least) < 20
