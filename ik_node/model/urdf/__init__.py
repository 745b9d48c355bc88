# SPDX-License-Identifier: Apache-2.0
"""From the text of a URDF or xacro to a robot, with an error for every fault."""
