"""The routes of boards and of the links to them."""
