"""The ROS package ik_node (ament_python) and its console scripts."""

from setuptools import find_packages, setup

setup(
    name='ik_node',
    version='0.1.0',
    packages=find_packages(include=['ik_node', 'ik_node.*']),
)
