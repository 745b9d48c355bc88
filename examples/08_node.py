# SPDX-License-Identifier: Apache-2.0
"""Send a goal to ik_node with rclpy, and wait until the arm has arrived.

It starts an ik_node of its own in the namespace /example, which moves only a display, and ends it.
"""

import subprocess
import sys
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from sensor_msgs.msg import JointState

ARM = Path(__file__).parents[1] / 'urdf' / 'seed_arm.urdf.xacro'
START = [sys.executable, '-m', 'ik_node.start', 'ik_node', '--ros-args', '-r', '__ns:=/example']
PATIENT = ['-p', 'goal_timeout:=30.0']  # also on a busy computer; an arm that moves has 1 s

ik_node = subprocess.Popen([*START, *PATIENT, '-p', f'urdf_file:={ARM}'])
rclpy.init()
node = rclpy.create_node('client', namespace='/example')
reports: list[DiagnosticStatus] = []
joints: list[JointState] = []
node.create_subscription(DiagnosticStatus, 'ik_node/status', reports.append, 10)
node.create_subscription(JointState, 'joint_states', joints.append, 10)
goals = node.create_publisher(PoseStamped, 'goal_pose', 1)
try:
    while not joints:  # ik_node publishes them once it has an arm
        assert ik_node.poll() is None, 'ik_node has ended'
        rclpy.spin_once(node, timeout_sec=0.1)
    # The tool points down: half a turn about x. The stamp identifies the goal in the reports.
    goal = PoseStamped(pose=Pose(position=Point(x=0.4, y=0.1, z=0.2), orientation=Quaternion(x=1.0, w=0.0)))
    stamp = goal.header.stamp = node.get_clock().now().to_msg()
    goals.publish(goal)
    state = ''
    while state not in ('arrived', 'stopped', 'held', 'rejected'):
        rclpy.spin_once(node, timeout_sec=0.1)
        while reports:
            report = {pair.key: pair.value for pair in reports[0].values}
            if report['goal_stamp'] == f'{stamp.sec}.{stamp.nanosec:09d}':
                state = report['state']
                print(f'{report["status"]}, {state}: {reports[0].message}')
            del reports[0]
    print(*(f'{n}={v:.4f}' for n, v in zip(joints[-1].name, joints[-1].position, strict=True)))
finally:
    ik_node.terminate()
    ik_node.wait()
    rclpy.shutdown()
