"""What can be done to a job: submit, restart, cancel, query."""
