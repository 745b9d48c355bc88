"""One chain of joints: forward kinematics, Jacobians, ball joints, random configurations and lists."""
