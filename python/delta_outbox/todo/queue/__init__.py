"""Answers to To-Do items that come by topics of Kafka."""
