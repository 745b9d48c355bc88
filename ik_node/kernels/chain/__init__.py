"""One chain of joints: forward kinematics, Jacobians, ball joints, lists of configurations."""
