"""An HTTPS server that refuses our credentials is one outage, not a failure of each file."""

from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.transfers.endpoints import partner_probe
from activities.transfers.write_file import HttpCalling
from adapters.files.openpgp.keyring import GnuPg
from adapters.ports.errors import Denied
from adapters.ports.places import LoginRefused
from adapters.secrets import ReferencedSecrets
from tests.support.imports.activities import environment
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.actions import Endpoints
from tests.support.transfers.http_files import HttpFiles, http_files
from tests.support.transfers.installation import OLGA
from tests.support.transfers.places import joined, open_places, write
from workers.transfers.partners import PartnerService
from workflows.shared.errors import TRANSIENT, UNAVAILABLE
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.settings import CallHttp

SECRETS = {"TOKEN": "planted-old-token", "PASSWORD": "planted-password"}
BY_TOKEN = {"token": "env:TOKEN"}
BY_PASSWORD = {"user": "us", "password": "env:PASSWORD"}


def a_partner(server: HttpFiles, **fields: object) -> Partner:
    known = {"name": "acme", "kind": PlaceKind.HTTPS, "host": "http://127.0.0.1"}
    return Partner.model_validate({**known, "port": server.port, **fields})


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (BY_TOKEN, "our token env:TOKEN"),
        (BY_PASSWORD, "the user us with the password env:PASSWORD"),
        ({}, "requests without credentials, and its record names none"),
    ],
)
async def test_a_server_that_refuses_our_credentials_is_an_outage_for_every_file(
    fields: dict[str, str], named: str
) -> None:
    async with http_files() as server:
        server.files["file.csv"] = b"one"
        partner = a_partner(server, **fields)
        async with open_places(SECRETS).open(partner) as place:
            entry = await place.stat("file.csv")
            server.status = "401 Unauthorized"
            for use in (
                place.stat("file.csv"),
                place.list("file.csv", 5),
                joined(place.read(entry)),
                write(place, "other.csv", b"two"),
                place.remove("file.csv"),
                place.ping(),
            ):
                with pytest.raises(LoginRefused) as raised:
                    await use
                assert str(raised.value) == (
                    f"acme does not accept {named}: it answered 401; once that is put right, runs "
                    "continue within five minutes"
                )
                assert raised.value.partner == "acme"


async def test_the_outage_lasts_as_long_as_the_credentials_are_refused() -> None:
    async with http_files() as server:
        partners = MemoryPartners(a_partner(server, **BY_TOKEN))
        server.status = "401 Unauthorized"
        with pytest.raises(LoginRefused, match="env:TOKEN"):
            await partner_probe(open_places(SECRETS), partners, "acme")
        server.status = None
        assert await partner_probe(open_places(SECRETS), partners, "acme") is None


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_one_path_that_is_refused_fails_its_own_action(status: str) -> None:
    async with http_files() as server:
        server.refused["closed/file.csv"] = status
        server.files["file.csv"] = b"one"
        async with open_places(SECRETS).open(a_partner(server, **BY_TOKEN)) as place:
            for use in (place.stat("closed/file.csv"), place.list("closed/file.csv", 5)):
                with pytest.raises(Denied) as raised:
                    await use
                assert not isinstance(raised.value, LoginRefused)
                assert f"to our token env:TOKEN: it answered {status[:3]}" in str(raised.value)
            assert (await place.stat("file.csv")).size == 3


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_the_folder_that_the_record_names_tells_where_the_root_is_open(status: str) -> None:
    async with http_files() as server:
        for path in ("data/", "data/file.csv"):
            server.refused[path] = status
        partner = a_partner(server, probe_folder="data/", **BY_TOKEN)
        async with open_places(SECRETS).open(partner) as place:
            with pytest.raises(LoginRefused, match=f"env:TOKEN: it answered {status[:3]}"):
                await place.stat("data/file.csv")


async def test_a_server_that_lists_no_folder_has_not_refused_our_credentials() -> None:
    async with http_files() as server:
        server.refused |= {"": "403 Forbidden", "gone.csv": "403 Forbidden"}
        server.files["file.csv"] = b"one"
        async with open_places(SECRETS).open(a_partner(server, **BY_TOKEN)) as place:
            await place.ping()
            with pytest.raises(Denied, match=r"'gone\.csv' to our token env:TOKEN"):
                await place.stat("gone.csv")
            assert (await place.stat("file.csv")).size == 3


async def test_calls_wait_where_every_call_is_refused(tmp_path: Path) -> None:
    async with http_files() as server:
        ends = Endpoints.at(tmp_path, a_partner(server, **BY_TOKEN), secrets=SECRETS)
        order = ends.order(CallHttp(partner="acme", body="none"), {"path": "/hook"})
        server.refused["hook"] = "401 Unauthorized"
        with pytest.raises(ApplicationError, match="answered 401 to POST") as raised:
            await environment().run(HttpCalling(ends.ports).call_http, order)
        assert raised.value.type == TRANSIENT
        server.status = "401 Unauthorized"
        with pytest.raises(ApplicationError, match="does not accept our token env:TOKEN") as raised:
            await environment().run(HttpCalling(ends.ports).call_http, order)
        assert raised.value.type == UNAVAILABLE
        accepted = CallHttp(partner="acme", body="none", succeeds=(401,))
        result = await environment().run(
            HttpCalling(ends.ports).call_http, order.model_copy(update={"action": accepted})
        )
        assert "planted" not in result.model_dump_json()


async def test_a_test_of_such_a_partner_reports_it() -> None:
    async with http_files() as server:
        store = MemoryPartners(a_partner(server, **BY_TOKEN))
        places = open_places(SECRETS, store=store)
        service = PartnerService(store, places, GnuPg(ReferencedSecrets({})))
        for status, works in ((None, True), ("401 Unauthorized", False)):
            server.status = status
            report = await service.test(OLGA, "acme")
            said = " ".join(report.sentences)
            assert report.works == works, said
            assert ("accepts us" in said) == works
            assert ("does not accept our token env:TOKEN" in said) == (not works)
            assert "planted" not in said
