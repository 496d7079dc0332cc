"""Logs on this machine: read and appended to as files, without a Spark job."""
