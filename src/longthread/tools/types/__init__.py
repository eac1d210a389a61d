"""The types of tools. Each module has one, and its name is the type's."""
