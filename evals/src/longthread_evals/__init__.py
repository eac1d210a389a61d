"""`longthread eval …`: what recall, views, the guard and the analyst do on questions whose answers are known."""
