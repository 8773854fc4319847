package telemetry

// GuessedSessions is of how many sessions wrong passwords are counted at a time.
const GuessedSessions = guessedSessions
