"""How the numbers and dates of a column are written: its format, kept from a file or guessed, and values by it."""
