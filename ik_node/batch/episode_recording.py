# SPDX-License-Identifier: Apache-2.0
"""Recordings of episodes: MCAP files for the viewer's replay, Foxglove and PlotJuggler; no ROS is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mcap_ros2.writer import Writer

from ik_node.checks import Array

TOPIC = '/joint_states'
KIND = 'sensor_msgs/msg/JointState'
DEFINITION = f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{80 * '='}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{80 * '='}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""


def write_recording(path: Path, names: Sequence[str], times: Array, q: Array) -> None:
    """Write joints q (N, n) [rad or m] at times (N,) [s], those since the first; replace what is there.

    A frame whose time is no later than that of one before has the time of that. Raises OSError.
    """
    since = np.nan_to_num(times - times[:1], nan=0.0, posinf=0.0, neginf=0.0)
    stamps = np.maximum.accumulate(np.rint(1e9 * since.clip(0.0, 2.0**31)).astype(np.int64)).tolist()
    temporary = path.with_name(f'{path.name}.writing')
    with temporary.open('wb') as stream, Writer(stream) as writer:
        kind = writer.register_msgdef(KIND, DEFINITION)
        for stamp, row in zip(stamps, q.tolist(), strict=True):
            at = {'sec': stamp // 10**9, 'nanosec': stamp % 10**9}
            message = {
                'header': {'stamp': at, 'frame_id': ''},
                'name': list(names),
                'position': row,
                'velocity': [],
                'effort': [],
            }
            writer.write_message(TOPIC, kind, message, stamp)
    temporary.replace(path)
