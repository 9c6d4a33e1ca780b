"""What makes a model safe to release, at what cost in accuracy? One package or file for each defence."""
