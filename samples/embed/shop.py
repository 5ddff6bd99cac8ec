"""A shop that shows the importer of docflow on its own page.

    python samples/embed/shop.py --docflow http://127.0.0.1:8000 --token docflow_7_... \\
        --type EVENT_PARTICIPANT --context 7

Its server has an API token with the role mapper. The token never leaves the server: the page gets
upload tokens, which last for minutes and are good for one kind of upload.
"""

import argparse
import json
import secrets
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx

PAGE = Path(__file__).with_name("shop.html")


class Shop(ThreadingHTTPServer):
    """The shop's server."""

    def __init__(self, port: int, docflow: str, token: str, upload: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", port), Requests)
        self.docflow = docflow
        self.token = token
        self.upload = upload
        self.sessions: dict[str, str] = {}
        """Session of docflow to the customer of the shop whose it is."""

    def upload_token(self, customer: str, session: str | None) -> dict[str, Any]:
        """Make an upload token for a customer, or renew that of a session of theirs."""
        if session is None:
            wanted = {**self.upload, "name": f"Customer {customer}"}
        elif self.sessions.get(session) == customer:
            # A person who renews a session sees its uploads: renew only the person's own session.
            wanted = {"session": session, "lasts_seconds": self.upload.get("lasts_seconds", 900)}
        else:
            raise PermissionError(session)
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.post(f"{self.docflow}/api/v1/upload-tokens", json=wanted, headers=headers)
        made = answer.raise_for_status().json()
        self.sessions[made["session"]] = customer
        return {"session": made["session"], "token": made["token"]}


class Requests(BaseHTTPRequestHandler):
    """The page, and the tokens for it."""

    @property
    def shop(self) -> Shop:
        """The shop that is asked."""
        return cast("Shop", self.server)

    def do_GET(self) -> None:
        """Send the page of the shop."""
        if self.path != "/":
            self.send_error(404)
            return
        page = PAGE.read_text(encoding="utf-8").replace("{docflow}", self.shop.docflow)
        self._send(200, "text/html; charset=utf-8", page, self._customer() or secrets.token_hex(8))

    def do_POST(self) -> None:
        """Give the page an upload token."""
        customer = self._customer()
        # A page of another site cannot send JSON here without being asked first.
        is_json = self.headers.get("Content-Type") == "application/json"
        if self.path != "/upload-token" or not customer or not is_json:
            self.send_error(404)
            return
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        try:
            made = self.shop.upload_token(customer, sent.get("session"))
        except PermissionError:
            self.send_error(403)
        except httpx.HTTPStatusError as error:
            self._send(502, "application/json", error.response.text)
        else:
            self._send(200, "application/json", json.dumps(made))

    def _customer(self) -> str | None:
        """Who is signed in to the shop: here, everyone who has its cookie."""
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("customer")
        return cookie.value if cookie else None

    def _send(self, status: int, kind: str, text: str, customer: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if customer:
            self.send_header("Set-Cookie", f"customer={customer}; HttpOnly; SameSite=Strict")
        docflow = self.shop.docflow
        self.send_header(
            "Content-Security-Policy",
            "default-src 'none'; img-src data:; style-src 'unsafe-inline'; connect-src 'self'; "
            f"script-src 'unsafe-inline' {docflow}; frame-src {docflow}",
        )
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve the shop."""
    parser = argparse.ArgumentParser(description="A shop that shows the importer of docflow")
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--origin", help="address of the shop, if it is another one than localhost")
    parser.add_argument("--docflow", default="http://127.0.0.1:8000")
    parser.add_argument("--token", required=True, help="an API token with the role mapper")
    parser.add_argument("--organisation", type=int)
    parser.add_argument("--type", default="EVENT_PARTICIPANT")
    parser.add_argument("--context", type=int)
    parser.add_argument("--lasts", type=int, default=900, help="seconds that a token is valid")
    given = parser.parse_args()
    shop = Shop(
        given.port,
        given.docflow,
        given.token,
        {
            "import_type": given.type,
            "context_id": given.context,
            "organisation_id": given.organisation,
            "origins": [given.origin or f"http://localhost:{given.port}"],
            "theme": {"accent": "#0a6b5c", "radius": "4px", "font": "Georgia, serif"},
            "lasts_seconds": given.lasts,
        },
    )
    print(f"the shop is at {given.origin or f'http://localhost:{given.port}'}", flush=True)
    shop.serve_forever()


if __name__ == "__main__":
    main()
