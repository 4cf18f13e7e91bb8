"""What the demo and the tests run instead of a paid model."""
