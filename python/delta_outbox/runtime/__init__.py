"""Where we run: the home and its locks, Java, the Spark session, dbt, the settings file."""
