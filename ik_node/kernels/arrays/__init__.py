# SPDX-License-Identifier: Apache-2.0
"""What kernels share below kinematics: array layout, rotations, polynomials, eigenvalues."""
