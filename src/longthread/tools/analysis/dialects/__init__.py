"""The databases that a source can stand on: a module for each says what differs in it."""
