"""A standing brief with schedules, an inbox, an outbox and a memory. Not built yet."""
