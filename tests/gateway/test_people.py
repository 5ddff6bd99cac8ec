"""Questions about people, over HTTP and on the page."""

from functools import partial
from typing import Any

import pytest

from tests.support.gateway import Stack, import_in, sheet, sign_in, token, until
from tests.support.waiting import eventually
from workflows.spreadsheets.mappings import Outcome

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADER = ("First name", "Last name", "Email", "Date of birth")
KNOWN = ("Zoe", "Quast", "", "1990-05-31"), ("Yves", "Quast", "", "1991-05-31")
WITH_MAIL = tuple((first, last, f"{first}@quast.org", born) for first, last, _, born in KNOWN)


async def test_questions_about_people_are_grouped_and_answered_together(stack: Stack) -> None:
    async with stack.browser(token("anna")) as anna:
        await import_in(anna, "COMPLETED", sheet(HEADER, *KNOWN), autoStart="true")
        uuid = await import_in(
            anna, "CELL_MAPPING", sheet(HEADER, *WITH_MAIL), autoStart="true", dryRun="true"
        )
        url = f"/api/imports/{uuid}"
        await eventually(partial(_waits, anna, url))
        upload = f"/api/v1/uploads/{uuid}"
        (group,) = (await anna.get(f"{upload}/values", params={"limit": 1})).json()["questions"]
        assert (group["question"], group["count"]) == ("MAIL_MISSING", 2)
        found = (await anna.get(f"{url}/cell-mappings", params={"question": "MAIL_MISSING"})).json()
        assert [each["targetField"] for each in found] == ["PERSON", "PERSON"]
        assert found[0]["reason"] == group["reason"]
        assert found[0]["alternatives"][0]["name"] == "Zoe Quast, 1990-05-31"
        people = await anna.get(
            f"{url}/cell-mappings/candidates", params={"targetField": "PERSON", "query": "yv qua"}
        )
        assert [each["displayName"] for each in people.json()] == ["Yves Quast, 1991-05-31"]
        wrong = {"id": group["first_id"], "reset": True, "forAll": True}
        refused = await anna.put(f"{url}/cell-mappings", json=[wrong])
        assert (refused.status_code, "forAll goes with" in refused.json()["detail"]) == (422, True)

        await _answer_on_the_page(stack, uuid, f"all:{group['first_id']}:confirm")
        assert (await anna.post(f"{url}/cell-mappings/confirm")).status_code == 202
        await until(anna, uuid, "COMPLETED")
        summary = (await anna.get(f"{url}/results/summary")).json()
        assert summary[Outcome.UPDATED.lower()] == 2
        assert {
            (each["column"], each["record"], each["title"]) for each in summary["differences"]
        } == {("email", "Person", "Email")}


async def _waits(browser: Any, url: str) -> bool:
    return (await browser.get(url)).json()["waitingSince"] is not None


async def _answer_on_the_page(stack: Stack, uuid: str, button: str) -> None:
    async with stack.browser("") as browser:
        await sign_in(browser, token("anna"))
        page = (await browser.get(f"/uploads/{uuid}")).text
        assert "2 people: the same name, and one of the two has no mail address" in page
        assert f'value="{button}"' in page
        csrf, version = (
            page.split(f'name="{name}" value="')[1].split('"')[0] for name in ("csrf", "version")
        )
        form = {"csrf": csrf, "version": version, "do": button}
        for wrong in ({"do": "all:0:confirm"}, {"do": "each:target", "value-0": "0:Zoe"}):
            refused = await browser.post(f"/uploads/{uuid}/values", data={**form, **wrong})
            assert refused.status_code == 422, refused.text
        taken = await browser.post(f"/uploads/{uuid}/values", data=form)
        assert taken.status_code == 303, taken.text
