"""The scenarios that the kit plays, each with the checks that judge what was seen."""
