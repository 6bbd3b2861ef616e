"""As zeus.optimizer: the power limit."""
