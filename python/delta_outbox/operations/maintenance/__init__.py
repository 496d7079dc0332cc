"""What keeps an outbox small and fast: compaction, the removal of old files, purges."""
