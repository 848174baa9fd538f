"""What each system declares for the surfaces."""
