"""Kits for those who write against delta-outbox; nothing here is imported by the product."""
