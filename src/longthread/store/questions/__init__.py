"""Questions before they are entries: questions that wait, and the keys under which a client may retry one."""
