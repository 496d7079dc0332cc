"""The store contract over the logs: claims, lanes, leases, policies, recovery."""
