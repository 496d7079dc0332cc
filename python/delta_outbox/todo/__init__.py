"""The server of To-Do items: people and third parties answer them over HTTP."""
