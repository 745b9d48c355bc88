# SPDX-License-Identifier: Apache-2.0
"""The ROS package ik_node (ament_python) and its console scripts."""

import re
import sys
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = 'ik_node'
MANIFEST = Path('package.xml').read_text(encoding='utf-8')
SHARE = f'share/{PACKAGE}'


def shared(folder: str) -> tuple[str, list[str]]:
    """Return the data_files entry that installs the files of a folder under the same name in SHARE."""
    files = sorted(str(path) for path in Path(folder).glob('*') if path.is_file())
    return f'{SHARE}/{folder}', files


if 'bdist_wheel' in sys.argv and not list(Path(PACKAGE, 'kernels').glob('*.so')):
    print('This wheel has no compiled kernels: make wheel builds one that has.', file=sys.stderr)

setup(
    name=PACKAGE,
    version=re.findall('<version>(.*)</version>', MANIFEST)[0],
    description='Position-plus-direction inverse kinematics for arms with five joints',
    maintainer='ik_node maintainers',
    maintainer_email='maintainers@ik-node.example',
    license='Apache-2.0',
    long_description=Path('README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    keywords=['inverse kinematics', 'robotics', 'ROS 2', 'URDF', 'five joints'],
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Education',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3 :: Only',
        *(f'Programming Language :: Python :: 3.{minor}' for minor in range(10, 15)),
        'Topic :: Scientific/Engineering',
        'Typing :: Typed',
    ],
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    package_data={
        PACKAGE: ['py.typed'],
        f'{PACKAGE}.kernels': ['*.so'],  # put there by make wheel
        f'{PACKAGE}.kernels.emit': ['*.h'],
        f'{PACKAGE}.tools.export': ['*.h', '*.c', '*.html', '*.js'],
        f'{PACKAGE}.tools.export.moveit': ['*.cpp', '*.hpp', '*.md', '*.txt', '*.xml', '*.yaml'],
        f'{PACKAGE}.viewer': ['stop_page.html'],
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (SHARE, ['package.xml']),
        *map(shared, ('launch', 'urdf', 'config', 'config/servos')),
    ],
    zip_safe=False,  # compiled kernels are kept beside the source
    python_requires='>=3.10',
    install_requires=[
        'lxml>=4.8',
        'numpy>=1.22',
        'pyyaml>=5.4',
        'ruckig>=0.12.2',
        'transforms3d>=0.4.1',
        'xacro>=2',
    ],
    extras_require={
        # ik_viewer, ik_demo
        'viewer': [
            'mcap>=1.6',
            'pillow>=9',
            'trimesh>=4.6',
            'viser>=1.1',
            'websockets>=13',
            'yourdfpy>=0.0.56',
        ],
        'collision': ['coal>=3.0.1'],  # self-collision checking; meshes need trimesh too
        'pictures': ['matplotlib>=3.5', 'tqdm>=4.62'],  # ik_reach
        'scipy': ['scipy>=1.9'],  # the methods autodiff and scipy, ik_reach --volume
        'sim': ['mujoco>=3.2'],  # ik_plant
        'proofs': ['python-flint>=0.7'],  # IkSolver.prove
        'servos': ['pyserial>=3.5'],  # ik_servos, ik_servo_check
        'batch': ['mcap-ros2-support>=0.6', 'pyarrow>=14', 'tqdm>=4.62'],  # ik_batch, ik_retarget
        'many': ['distributed>=2024.1', 'pyarrow>=14', 'tqdm>=4.62'],  # the same on a Dask cluster
        'docs': ['furo>=2024.8', 'latex2mathml>=3.77', 'myst-parser>=4', 'sphinx>=8,<9'],  # make docs
        # ROS 2 itself, from PyPI, for machines without a ROS installation. Never beside a sourced ROS.
        'ros-wheels': [
            'ros-jazzy-diagnostic-msgs',
            'ros-jazzy-geometry-msgs',
            'ros-jazzy-rclpy',
            'ros-jazzy-rmw-fastrtps-cpp',
            'ros-jazzy-sensor-msgs',
            'ros-jazzy-std-msgs',
            'ros-jazzy-std-srvs',
            'ros-jazzy-trajectory-msgs',
            'ros-jazzy-visualization-msgs',
        ],
        'coverage': ['pytest-cov>=6'],  # make coverage
        # What ruff and mypy object to changes from release to release, hence the upper bounds.
        'test': [
            'catkin-pkg',
            # Clients of servo buses that others wrote; rustypot has no wheels for Python 3.14 on Linux.
            'dynamixel-sdk>=4.1',
            'feetech-servo-sdk>=1',
            'rustypot>=1.13.1,<2; python_version < "3.14"',
            'hypothesis>=6.100',
            'import-linter>=2.5,<3',
            'mcap-ros2-support>=0.6',  # a foreign reader of recordings
            'numba>=0.57,<0.69',  # an oracle of the tests
            'mypy>=2.4,<2.5',
            'pytest>=9',
            'pytest-xdist>=3.5',
            'ruff>=0.17,<0.18',
            'selenium>=4.10',
            'xarray>=2023.1',  # a foreign reader of volumes
        ],
    },
    entry_points={
        'console_scripts': [
            'ik_node = ik_node.start:ik_node',
            'ik_viewer = ik_node.start:ik_viewer',
            'ik_marker = ik_node.start:ik_marker',
            'ik_goals = ik_node.start:ik_goals',
            'ik_teleop = ik_node.start:ik_teleop',
            'ik_leader = ik_node.start:ik_leader',
            'ik_calibrate = ik_node.start:ik_calibrate',
            'ik_goto = ik_node.start:ik_goto',
            'ik_stop = ik_node.start:ik_stop',
            'ik_resume = ik_node.start:ik_resume',
            'ik_status = ik_node.start:ik_status',
            'ik_play = ik_node.start:ik_play',
            'ik_servos = ik_node.start:ik_servos',
            'ik_plant = ik_node.start:ik_plant',
            'ik_demo = ik_node.start:ik_demo',
            'ik_inspect = ik_node.start:ik_inspect',
            'ik_reach = ik_node.start:ik_reach',
            'ik_solve = ik_node.start:ik_solve',
            'ik_batch = ik_node.start:ik_batch',
            'ik_retarget = ik_node.start:ik_retarget',
            'ik_place = ik_node.start:ik_place',
            'ik_export = ik_node.start:ik_export',
            'ik_servo_check = ik_node.start:ik_servo_check',
        ]
    },
)
