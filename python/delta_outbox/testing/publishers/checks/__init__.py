"""The checks, by what they are about."""
