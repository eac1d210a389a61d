"""A message of a conversation, without any framework: how it is written into an entry, and read again."""
