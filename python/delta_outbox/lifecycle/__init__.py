"""What a delivery is and becomes. Pure."""
