"""What kernels share below kinematics: array layout, rotations, polynomials, eigenvalues."""
