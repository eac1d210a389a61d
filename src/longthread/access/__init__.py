"""Who uses a server, and what each may do: users, sessions, keys, grants, spending and the audit log."""
