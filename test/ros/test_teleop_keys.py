# SPDX-License-Identifier: Apache-2.0
"""ik_teleop: keys of a terminal move a real node over DDS."""

import os
import pty
import signal
import time

import pytest
from node_harness import client_in
from processes import Running, start_node


@pytest.fixture
def arm(tmp_path):
    """A running node, and a client of it."""
    running = start_node(tmp_path, 'home:=[0.3, 0.4, 0.5, 0.2, 0.3]')
    try:
        with client_in(running.domain) as client:
            yield running, client
    finally:
        running.end()


def test_keys_move_the_tool_only_while_they_are_pressed(arm):
    running, client = arm
    ours, theirs = pty.openpty()
    keys = Running('ik_teleop', stdin=theirs, domain=running.domain)
    try:
        keys.wait_said('Move the tool')
        client.wait(lambda: client.node.count_publishers('ik_node/delta_twist_cmds') > 0, 'the keys')
        before = client.position()
        client.wait(
            lambda: (os.write(ours, b's'), abs(client.position() - before).max() > 0.02)[1], 'the motion'
        )
        still = client.wait_still()
        time.sleep(0.3)
        assert (client.position() == still).all()
        os.write(ours, b' ')
        keys.wait_said('stop: stopping')
        os.write(ours, b'c')
        keys.wait_said('resume: ')
        os.write(ours, b'+')
        keys.wait_said('speed 0.4')
        os.write(ours, b'q')
        assert keys.wait_ended() == 0
    finally:
        keys.end()
        os.close(ours)
        os.close(theirs)


def test_ctrl_c_ends_it_quietly(arm):
    running, _ = arm
    keys = Running('ik_teleop', domain=running.domain)
    keys.wait_said('Move the tool')
    keys.process.send_signal(signal.SIGINT)
    assert keys.wait_ended() == 0
    assert 'Traceback' not in keys.said
