"""Runs workflows on the logs. No relay does so yet.

- hosts: the processes in which calls run
"""
