"""Records of jobs and tasks."""
