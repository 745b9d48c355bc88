"""How a method finds its solution, step by step."""
