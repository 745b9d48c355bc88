# SPDX-License-Identifier: Apache-2.0
"""The topics and services of ik_servos; the reference is generated from these."""

from __future__ import annotations

from ik_node.ros.interfaces import PublishedTopic, Service, SubscribedTopic
from ik_node.ros.qos import NEWEST, STREAM

JOINT_COMMANDS = SubscribedTopic(
    'joint_commands',
    'sensor_msgs/JointState',
    'positions by joint name; joints that are not named keep theirs',
    NEWEST,
)
JOINT_STATES = PublishedTopic(
    'joint_states',
    'sensor_msgs/JointState',
    'measured position, velocity, and as effort the load: a share of the torque',
    STREAM,
)
DIAGNOSTICS = PublishedTopic(
    '/diagnostics',
    'diagnostic_msgs/DiagnosticArray',
    'state, reason, rate, bus errors; voltage, temperature and load of each servo',
    STREAM,
)
TORQUE = Service(
    '~/torque',
    'std_srvs/SetBool',
    'on: holds the arm where it is. Off: lowers the torque for 3 s and removes it, unless `~/hold` is '
    'called; support the arm. While it is lowered, "on" waits until the torque is off',
)
HOLD = Service(
    '~/hold',
    'std_srvs/Trigger',
    'holds the arm at once, and rejects commands until `~/clear` or `~/torque`, even if the bus fails in the '
    'meantime. While the arm is passive it fails, but cancels `torque_at_start`',
)
CLEAR = Service('~/clear', 'std_srvs/Trigger', 'ends a hold or a fault')
SET_ZERO = Service('~/set_zero', 'std_srvs/Trigger', 'stores that the arm is in `known_pose`')
