# SPDX-License-Identifier: Apache-2.0
"""Robot models: description (URDF, xacro) -> Robot -> Arm. No solving."""
