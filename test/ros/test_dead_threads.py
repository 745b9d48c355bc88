# SPDX-License-Identifier: Apache-2.0
"""The arm rests and a reason is given when a thread of the node has ended."""

import threading

from node_harness import running
from small_arm import arm_urdf


def test_an_arm_in_motion_brakes_when_goals_are_no_longer_solved():
    with running(arm_urdf()) as client:
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: client.position('yaw') > 0.1, 'the motion')
        ended = threading.Thread(target=lambda: None)
        ended.start()
        ended.join()
        client.served._goals._goals = ended
        client.wait_said('restart ik_node: the thread that solves goals has ended')
        client.wait(lambda: not any(client.samples[-1].velocity), 'rest')
        assert client.position('yaw') < 1.9
        client.call('ik_node/resume')
        client.wait(
            lambda: len(client.statuses) > 4 and client.said()['state'] == 'faulted', 'the fault again'
        )
