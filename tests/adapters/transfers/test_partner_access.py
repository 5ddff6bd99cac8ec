"""Who is connected to: host keys, secrets, egress, links."""

import base64
import os
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio

from adapters.places.egress import Egress
from adapters.ports.errors import Denied
from adapters.ports.places import (
    FileChanged,
    LoginRefused,
    NameRefused,
    PartnerAway,
    UnknownHostKey,
)
from tests.support.certificates import certificate_for
from tests.support.transfers.http_files import http_files
from tests.support.transfers.places import joined, open_places, write
from tests.support.transfers.sftp_server import EXPIRED, PASSWORD, SftpSite, pinned, sftp_site
from workflows.transfers.partners import HostKey, Partner, PlaceKind

SECRETS = {"SFTP_PASSWORD": PASSWORD}


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[SftpSite]:
    async with sftp_site(tmp_path / "served") as served:
        yield served


async def test_an_unknown_host_key_is_shown_and_nothing_is_sent(site: SftpSite) -> None:
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    partner = site.partner(host_keys=(pinned(other),))
    with pytest.raises(UnknownHostKey) as raised:
        async with open_places(SECRETS).open(partner):
            pass
    assert raised.value.shown == site.host_key.get_fingerprint()
    assert list(raised.value.known) == [other.get_fingerprint()]
    assert raised.value.key == pinned(site.host_key).key
    assert site.logins == []
    assert raised.value.shown in str(raised.value) and raised.value.known[0] in str(raised.value)


async def test_without_a_pinned_key_no_server_is_trusted(site: SftpSite) -> None:
    with pytest.raises(UnknownHostKey, match="none is pinned"):
        async with open_places(SECRETS).open(site.partner(host_keys=())):
            pass


async def test_pinned_keys_count_on_their_days_only(site: SftpSite) -> None:
    old = asyncssh.generate_private_key("ssh-rsa", key_size=2048)
    today = datetime.now(UTC).date()
    new = pinned(site.host_key).model_copy(update={"valid_from": today})
    partner = site.partner(host_keys=(pinned(old), new))
    async with open_places(SECRETS).open(partner) as place:
        await write(place, "file.csv", b"x")
    shown = site.host_key.get_fingerprint()
    tomorrow = today + timedelta(1)
    for dates, said in (
        ({"valid_from": tomorrow}, f"{shown} is pinned, but counts from {tomorrow} only"),
        (
            {"valid_until": date(2020, 1, 1)},
            f"{shown} is pinned, but has expired: its last day was 2020-01-01",
        ),
    ):
        with pytest.raises(UnknownHostKey) as raised:
            async with open_places(SECRETS).open(
                site.partner(host_keys=(new.model_copy(update={"valid_from": None, **dates}),))
            ):
                pass
        assert str(raised.value) == f"acme shows the host key {shown}; {said}"
        assert raised.value.known == ()


async def test_a_key_or_a_password_lets_us_in(site: SftpSite) -> None:
    key = site.client_key.export_private_key("pkcs8-pem", "planted-phrase").decode()
    secrets = {"KEY": key, "PHRASE": "planted-phrase"}
    by_key = {"password": None, "private_key": "env:KEY", "passphrase": "env:PHRASE"}
    async with open_places(secrets).open(site.partner(**by_key)) as place:
        assert await place.list("*", 5) == []
    async with open_places(SECRETS).open(site.partner()) as place:
        assert await place.list("*", 5) == []
    assert {"key", "password"} <= set(site.logins)


@pytest.mark.parametrize("secrets", [{}, {"SFTP_PASSWORD": ""}])
async def test_a_secret_that_is_not_there_is_named(site: SftpSite, secrets: dict[str, str]) -> None:
    with pytest.raises(Denied, match="env:SFTP_PASSWORD"):
        async with open_places(secrets).open(site.partner()):
            pass


@pytest.mark.parametrize(
    ("password", "said"),
    [("planted-wrong-password", "does not let docflow in"), (EXPIRED, "password has expired")],
)
async def test_a_server_that_refuses_our_login_is_an_outage_for_every_run(
    site: SftpSite, password: str, said: str
) -> None:
    with pytest.raises(LoginRefused, match=said) as raised:
        async with open_places({"SFTP_PASSWORD": password}).open(site.partner()):
            pass
    assert "planted" not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_a_key_with_another_passphrase_is_named_by_its_reference(site: SftpSite) -> None:
    key = site.client_key.export_private_key("pkcs8-pem", "planted-phrase").decode()
    fields = {"password": None, "private_key": "env:KEY", "passphrase": "env:PHRASE"}
    with pytest.raises(Denied, match="env:KEY") as raised:
        async with open_places({"KEY": key, "PHRASE": "other"}).open(site.partner(**fields)):
            pass
    assert "planted" not in str(raised.value)


def openssh_key_with_passphrase() -> str:
    """Its container as `ssh-keygen` writes it, around bytes that are never decrypted."""

    def field(content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + content

    public = asyncssh.generate_private_key("ssh-ed25519").public_data
    options = field(bytes(16)) + (16).to_bytes(4, "big")
    content = b"openssh-key-v1\0" + field(b"aes256-ctr") + field(b"bcrypt") + field(options)
    content += (1).to_bytes(4, "big") + field(public) + field(bytes(128))
    begin, end = (f"-----{each} OPENSSH PRIVATE KEY-----\n" for each in ("BEGIN", "END"))
    return begin + base64.encodebytes(content).decode() + end


@pytest.mark.parametrize("passphrase", [None, "env:PHRASE"])
async def test_an_openssh_key_with_a_passphrase_is_refused_with_what_to_do(
    site: SftpSite, passphrase: str | None
) -> None:
    secrets = {"KEY": openssh_key_with_passphrase(), "PHRASE": "planted-phrase"}
    fields = {"password": None, "private_key": "env:KEY", "passphrase": passphrase}
    with pytest.raises(Denied, match=r"ssh-keygen -p -N ''") as raised:
        async with open_places(secrets).open(site.partner(**fields)):
            pass
    assert "planted" not in str(raised.value)
    assert site.logins == []


async def test_a_root_is_never_left_by_a_link(site: SftpSite) -> None:
    (site.folder / "secret.csv").write_bytes(b"theirs")
    (site.folder / "home" / "in").mkdir(parents=True)
    (site.folder / "home" / "in" / "fine.csv").write_bytes(b"ours")
    (site.folder / "home" / "in" / "file.csv").symlink_to("../../secret.csv")
    (site.folder / "home" / "in" / "link.csv").symlink_to("fine.csv")
    (site.folder / "home" / "up").symlink_to("..")
    async with open_places(SECRETS).open(site.partner(root="home")) as place:
        assert [each.path for each in await place.list("in/*", 9)] == ["in/fine.csv", "in/link.csv"]
        for path in ("in/file.csv", "up/secret.csv"):
            with pytest.raises(NameRefused, match="leads out"):
                await place.stat(path)
        with pytest.raises(NameRefused):
            await write(place, "up/new.csv", b"x")
    assert not (site.folder / "new.csv").exists()


async def test_a_folder_is_never_left_by_a_link(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    (tmp_path / "secret.csv").write_bytes(b"theirs")
    (share / "file.csv").symlink_to("../secret.csv")
    (share / "up").symlink_to("..")
    partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share))
    async with open_places(folders=[tmp_path]).open(partner) as place:
        assert await place.list("*", 9) == []
        for path in ("file.csv", "up/secret.csv"):
            with pytest.raises(NameRefused, match="leads out"):
                await place.stat(path)
        with pytest.raises(NameRefused):
            await write(place, "up/new.csv", b"x")
    with pytest.raises(Denied, match="DOCFLOW_TRANSFERS_FOLDERS"):
        async with open_places(folders=[share / "below"]).open(partner):
            pass


@pytest.mark.parametrize("change", [b"longer than before", b"other"])
async def test_a_source_that_changes_while_it_is_read_is_refused(
    site: SftpSite, change: bytes
) -> None:
    path = site.folder / "file.bin"
    path.write_bytes(bytes(3 << 20))
    async with open_places(SECRETS).open(site.partner()) as place:
        entry = await place.stat("file.bin")
        chunks = place.read(entry)
        await anext(chunks)
        with path.open("ab" if change != b"other" else "r+b") as file:
            file.write(change)
        os.utime(path, (1, 1))
        with pytest.raises(FileChanged):
            await joined(chunks)


@pytest.mark.parametrize(
    ("kind", "host"),
    [
        (PlaceKind.SFTP, "10.0.0.7"),
        (PlaceKind.SFTP, "127.0.0.1"),
        (PlaceKind.SFTP, "::ffff:169.254.169.254"),
        (PlaceKind.HTTPS, "169.254.169.254"),
        (PlaceKind.HTTPS, "[::1]"),
        (PlaceKind.S3, "https://192.168.1.1"),
        (PlaceKind.S3, "http://192.168.1.1:9000"),
        (PlaceKind.AZURE_BLOB, "https://168.63.129.16"),
        (PlaceKind.S3, "https://rebound.example.org"),
        (PlaceKind.SFTP, "rebound.example.org"),
    ],
)
async def test_nothing_is_sent_to_addresses_that_are_not_permitted(
    kind: PlaceKind, host: str
) -> None:
    async def resolve(host: str, port: int) -> list[IPv4Address]:
        return [IPv4Address("10.1.2.3")]

    partner = Partner(
        name="acme",
        kind=kind,
        host=host,
        container="far",
        user="u",
        password="env:SECRET",
        token="env:SECRET",
    )
    places = open_places({"SECRET": "planted-secret"}, egress=Egress(resolve=resolve))
    with pytest.raises(Denied) as raised:
        async with places.open(partner) as place:
            await place.stat("file.csv")
    assert "planted" not in str(raised.value)


@pytest.mark.parametrize("kind", [PlaceKind.S3, PlaceKind.AZURE_BLOB, PlaceKind.HTTPS])
async def test_no_proxy_of_the_environment_makes_a_connection(
    kind: PlaceKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http_files() as server, http_files() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        host = f"http://127.0.0.1:{server.port}"
        fields = {"container": "far", "user": "u", "token": "env:T"}
        partner = Partner(name="acme", kind=kind, host=host, **fields)
        async with open_places({"T": "sv=2024&sig=planted"}).open(partner) as place:
            await place.ping()
        assert len(server.requests) == 1
        assert proxy.requests == []


async def test_only_hosts_of_the_list_are_connected_to(site: SftpSite) -> None:
    for hosts, permitted in ((("sftp.example.org",), False), (("127.0.0.1",), True)):
        places = open_places(SECRETS, egress=Egress(hosts, local=True))
        if permitted:
            async with places.open(site.partner()):
                continue
        with pytest.raises(Denied, match="DOCFLOW_TRANSFERS_HOSTS"):
            async with places.open(site.partner()):
                pass


async def test_a_network_of_the_settings_is_permitted(site: SftpSite) -> None:
    egress = Egress(networks=(IPv4Network("127.0.0.0/30"),))
    async with open_places(SECRETS, egress=egress).open(site.partner()) as place:
        assert await place.list("*", 2) == []


async def test_https_checks_the_certificate() -> None:
    certificate = certificate_for("127.0.0.1")
    async with http_files(certificate.server) as server:
        partner = Partner(
            name="acme", kind=PlaceKind.HTTPS, host="127.0.0.1", port=server.port, token="env:T"
        )
        secrets = {"T": "planted-token"}
        async with open_places(secrets, tls=certificate.client).open(partner) as place:
            await write(place, "file.csv", b"x")
        assert server.files == {"file.csv": b"x"}
        assert server.requests[0][1]["authorization"] == "Bearer planted-token"
        with pytest.raises(PartnerAway, match="certificate"):
            async with open_places(secrets).open(partner) as place:
                await place.stat("file.csv")


async def test_a_server_without_tls_is_not_spoken_to() -> None:
    partner = Partner(name="acme", kind=PlaceKind.HTTPS, host="http://example.org")
    with pytest.raises(Denied, match="https is needed"):
        async with open_places().open(partner):
            pass


async def test_a_file_that_cannot_be_read_back_is_reported() -> None:
    async with http_files() as server:
        server.readable = False
        partner = Partner(
            name="acme", kind=PlaceKind.HTTPS, host="http://127.0.0.1", port=server.port
        )
        async with open_places().open(partner) as place:
            written = await write(place, "file.csv", b"x")
    assert "nothing be read back" in written.guarantee


async def test_a_partner_that_is_stopped_or_disabled_is_waited_for(tmp_path: Path) -> None:
    partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(tmp_path))
    cases = (
        ({"stopped": "it has another key"}, "another key"),
        ({"enabled": False}, "partner change acme --enable"),
    )
    for fields, said in cases:
        with pytest.raises(PartnerAway, match=said):
            async with open_places(folders=[tmp_path]).open(partner.model_copy(update=fields)):
                pass


async def test_a_host_key_is_as_in_known_hosts(site: SftpSite) -> None:
    partner = site.partner(host_keys=(HostKey(key="ssh-ed25519 no-base64!"),))
    with pytest.raises(Denied, match="known_hosts"):
        async with open_places(SECRETS).open(partner):
            pass


async def test_a_server_in_trouble_is_waited_for() -> None:
    async with http_files() as server:
        partner = Partner(
            name="acme", kind=PlaceKind.HTTPS, host="http://127.0.0.1", port=server.port
        )
        async with open_places().open(partner) as place:
            for status, error in (("500 Broken", PartnerAway), ("302 Found", Denied)):
                server.status = status
                with pytest.raises(error):
                    await place.stat("file.csv")
            for status in ("302 Found", "403 Forbidden", "404 Not Found", "405 No", "501 No"):
                server.status = status
                await place.ping()
            for status in ("500 Broken", "503 Busy"):
                server.status = status
                with pytest.raises(PartnerAway, match=status[:3]):
                    await place.ping()
