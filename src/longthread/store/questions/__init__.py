"""Questions before they are entries: those that wait, and the keys under which a client may send one again."""
