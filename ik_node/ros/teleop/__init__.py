"""Topics of an operator."""
