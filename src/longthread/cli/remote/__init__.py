"""Commands on a server: the logins that are kept, the server's API, and its answers as the commands show them."""
