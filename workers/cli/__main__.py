"""`python -m workers.cli`, where `docflow` is not on the path."""

from workers.cli import main

main()
