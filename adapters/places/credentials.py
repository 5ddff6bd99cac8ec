"""Secrets of a partner, once they were looked up."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Credentials:
    """Who asks, with secrets that were looked up."""

    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def hide(self, text: str) -> str:
        """A text of a library or of a server, without the secrets."""
        for secret in (self.password, self.private_key, self.passphrase, self.token):
            for part in {secret, *(secret or "").splitlines()}:
                if part and len(part) > 3:
                    text = text.replace(part, "***")
        return text
