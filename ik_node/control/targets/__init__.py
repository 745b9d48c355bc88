"""From a request to joint targets."""
