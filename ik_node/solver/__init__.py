"""IkSolver and the stages of its pipeline."""
