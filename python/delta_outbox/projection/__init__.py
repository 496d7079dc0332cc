"""The projection: the fold of the logs, its refresh, and the tails behind it."""
