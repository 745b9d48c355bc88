# SPDX-License-Identifier: Apache-2.0
"""Extras: what only some systems have, since PyPI has no wheels of it: the action of controllers, and tf2."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sensor_msgs.msg import JointState


def _installed(module: str, name: str) -> Any:
    """Return a message of a package, None where that is not installed."""
    return getattr(import_module(module), name) if find_spec(module.partition('.')[0]) else None


FollowJointTrajectory: Any = _installed('control_msgs.action', 'FollowJointTrajectory')
TFMessage: Any = _installed('tf2_msgs.msg', 'TFMessage') if find_spec('tf2_ros') else None
JointJog: Any = _installed('control_msgs.msg', 'JointJog')
JOG: Any = JointJog or JointState  # what a node takes on delta_joint_cmds
