"""A simulated arm behind the controllers of a real one: MuJoCo, loaded where it is used."""
