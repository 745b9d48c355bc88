"""Local methods: their registry, and those in plain Python."""
