"""The `docflow` command."""


def main() -> None:
    """Entry point of the `docflow` program."""
    from workers.cli.app import app

    app(prog_name="docflow")
