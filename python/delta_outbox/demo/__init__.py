"""The demo: real flights, and a local Kafka for those who want to see one."""
