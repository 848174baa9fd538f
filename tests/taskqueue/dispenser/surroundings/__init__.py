"""What is around a dispenser: other processes, transactions, databases, time zones."""
