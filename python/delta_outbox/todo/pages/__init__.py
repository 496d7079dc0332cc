"""Pages for the people who answer To-Do items (docs/railway/todo-pages.md)."""
