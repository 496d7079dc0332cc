"""Runs workflows on the logs. No relay does so yet.

- derivation: what follows a start event, and the ending of a task
- hosts: the processes in which calls run
"""
