"""`python -m workers.shared.cli`, where `docflow` is not on the path."""

from workers.shared.cli import main

main()
