# SPDX-License-Identifier: Apache-2.0
"""Move the tool with twists, as a joystick does: sideways for a second, then let go.

It starts an ik_node of its own in the namespace /example, which moves only a display, and ends it.
"""

import subprocess
import sys
import time
from pathlib import Path

import rclpy
from geometry_msgs.msg import TwistStamped
from sensor_msgs.msg import JointState

from ik_node import Arm, Goal, IkSolver

FILE = Path(__file__).parents[1] / 'urdf' / 'seed_arm.urdf.xacro'
START = [sys.executable, '-m', 'ik_node.start', 'ik_node', '--ros-args', '-r', '__ns:=/example']

arm = Arm.from_file(FILE)
home = IkSolver(arm).solve(Goal(position=(0.4, 0.1, 0.2), direction=(0, 0, -1))).q
ik_node = subprocess.Popen([*START, '-p', f'urdf_file:={FILE}', '-p', f'home:={home.tolist()}'])
rclpy.init()
node = rclpy.create_node('client', namespace='/example')
joints: list[JointState] = []
node.create_subscription(JointState, 'joint_states', joints.append, 10)
twists = node.create_publisher(TwistStamped, 'ik_node/delta_twist_cmds', 1)


def send(speed: float, seconds: float) -> None:
    """Repeat a twist along y [share of scale_linear, 0.4 m/s] at 50 Hz; print where the tool is then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if speed:
            message = TwistStamped()
            message.header.stamp = node.get_clock().now().to_msg()
            message.twist.linear.y = speed
            twists.publish(message)
        rclpy.spin_once(node, timeout_sec=0.02)
    positions = dict(zip(joints[-1].name, joints[-1].position, strict=True))
    print(*arm.fk([positions[name] for name in arm.joint_names])[0].round(4) + 0.0)


try:
    while not joints or not twists.get_subscription_count():
        assert ik_node.poll() is None, 'ik_node has ended'
        rclpy.spin_once(node, timeout_sec=0.1)
    for speed in (0.0, -0.25, 0.0, 0.0):  # without twists the arm comes to rest
        send(speed, 1.0)
finally:
    ik_node.terminate()
    ik_node.wait()
    rclpy.shutdown()
