"""What people and programs do with jobs."""
