"""Secrets from files: `NAME_FILE=/path`, or a file called NAME in `DOCFLOW_SECRETS_DIR`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

SECRETS_DIR: Final = "DOCFLOW_SECRETS_DIR"


class SecretFiles:
    """The files that one environment names; each is read when its setting is.

    Args:
        environment: Names and values.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def value(self, name: str, text: str | None) -> str | None:
        """A secret from wherever it is given; None when it is not.

        Args:
            name: Of the setting.
            text: Its value in the environment.

        Raises:
            ValueError: It is given twice, or its file cannot be read or is empty. The message
                names the setting and no value.
        """
        named = self._environment.get(f"{name}_FILE", "").strip()
        files = [(f"{name}_FILE", Path(named))] if named else []
        if (path := self._in_folder(name)) is not None:
            files.append((f"the file {path.name} in {SECRETS_DIR}", path))
        ways = [*([name] if text is not None else []), *(way for way, _ in files)]
        if len(ways) > 1:
            raise ValueError(f"{name} is given more than once, by {' and '.join(ways)}; keep one")
        return _content(name, files[0][1]) if files else text

    def _in_folder(self, name: str) -> Path | None:
        folder = self._environment.get(SECRETS_DIR, "").strip()
        if not folder:
            return None
        try:
            names = sorted(path.name for path in Path(folder).iterdir())
        except OSError as error:
            raise ValueError(
                f"{SECRETS_DIR} must be a folder with a file for each secret: "
                f"{folder!r} cannot be read ({error.strerror})"
            ) from None
        # As pydantic-settings: upper and lower case are the same.
        found = next((each for each in names if each.upper() == name), None)
        return None if found is None else Path(folder) / found


def _content(name: str, path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(
            f"{name} cannot be read from its file {str(path)!r}: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{name} cannot be read from its file {str(path)!r}: not UTF-8") from None
    if not text:
        raise ValueError(f"{name} has an empty file: write the secret into {str(path)!r}")
    return text
