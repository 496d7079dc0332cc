"""Events on their way in: checked, compared with what is there, appended."""
