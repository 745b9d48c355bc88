"""Everything that may reject a setpoint, a motion or a trajectory."""
