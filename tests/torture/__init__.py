"""The promises of the transaction under fire: kills, errors, races, hostile input."""
