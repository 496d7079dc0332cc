"""What every room may use: values, rules of text, names. No Spark."""
