# SPDX-License-Identifier: Apache-2.0
"""Packages that only some programs and methods need; setup.py has the same extras."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ik_node.errors import MissingError

EXTRAS = {
    'viewer': ('mcap', 'pillow', 'trimesh', 'viser', 'websockets', 'yourdfpy'),
    'collision': ('coal',),
    'pictures': ('matplotlib', 'tqdm'),
    'scipy': ('scipy',),
    'sim': ('mujoco',),
    'proofs': ('python-flint',),
    'servos': ('pyserial',),
    'batch': ('mcap-ros2-support', 'pyarrow', 'tqdm'),
    'many': ('distributed', 'pyarrow', 'tqdm'),
}
PACKAGES = {
    'mcap_ros2': 'mcap-ros2-support',
    'PIL': 'pillow',
    'flint': 'python-flint',
    'serial': 'pyserial',
}  # of modules that are named otherwise
ROS_WHEELS = tuple(
    f'ros-jazzy-{name}'
    for name in (
        *('diagnostic-msgs', 'geometry-msgs', 'rclpy', 'rmw-fastrtps-cpp', 'sensor-msgs', 'std-msgs'),
        *('std-srvs', 'trajectory-msgs', 'visualization-msgs'),
    )
)
WITH_RCLPY = {'action_msgs', 'builtin_interfaces', 'lifecycle_msgs', 'rcl_interfaces'}
ROS_MODULES = WITH_RCLPY | {name.removeprefix('ros-jazzy-').replace('-', '_') for name in ROS_WHEELS}


def missing(package: str, user: str) -> MissingError:
    """Return the error that names the missing package, its user, and the command that installs it."""
    if package in ROS_MODULES:
        return MissingError(
            f'{user} needs ROS 2, and there is no module {package}. Source the setup.bash of ROS 2 first; '
            f'without a ROS installation: {sys.executable} -m pip install {" ".join(ROS_WHEELS)}'
        )
    package = PACKAGES.get(package, package)
    packages = next((names for names in EXTRAS.values() if package in names), (package,))
    return MissingError(
        f'{user} needs the package {package}, which is not installed. Install it: '
        f'{sys.executable} -m pip install {" ".join(packages)}'
    )


def load(module: str, user: str) -> Any:
    """Import a module of an extra for user. Raises MissingError."""
    require(module.partition('.')[0], user)
    return import_module(module)


def require(package: str, user: str) -> None:
    """Raise MissingError if user cannot import package, given by its name or that of its module."""
    module = next((module for module, name in PACKAGES.items() if name == package), package)
    if find_spec(module) is None:
        raise missing(package, user)
