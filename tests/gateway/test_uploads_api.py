"""Uploads: once however often they are sent, quick however large they are."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import psutil
import pytest

from tests.support.gateway import (
    GOOD,
    HEADER,
    Stack,
    served,
    sheet,
    sign_in,
    token,
    upload,
    uploaded_files,
)
from workflows.spreadsheets.runs import workflow_id

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def imports_of(browser: httpx.AsyncClient, subject: str) -> list[str]:
    found = (await browser.get("/api/imports", params={"size": 200})).json()
    return [each["identifier"] for each in found if each["createdBy"] == subject]


async def test_the_same_upload_twice_is_one_import(stack: Stack) -> None:
    key = {"idempotency-key": "registrations of May"}
    async with stack.browser(token("ida")) as ida:
        first = await upload(ida, headers=key)
        assert first.status_code == 201
        kept = uploaded_files(stack)
        again = await upload(ida, headers=key)
        assert again.status_code == 201
        assert again.headers["location"] == first.headers["location"]
        assert await imports_of(ida, "ida") == [first.json()["identifier"]]
        assert uploaded_files(stack) == kept

        for other in (
            await upload(ida, sheet(HEADER, *GOOD[:1]), headers=key),
            await upload(ida, headers=key, dryRun="true"),
            await upload(ida, headers=key, filename="other.csv"),
        ):
            assert other.status_code == 422
            assert "Idempotency-Key" in other.json()["detail"]
        assert len(await imports_of(ida, "ida")) == 1
        assert uploaded_files(stack) == kept

        await ida.delete(first.headers["location"])
        late = await upload(ida, headers=key)
        assert (late.status_code, late.json()["status"]) == (201, "CANCELLED")

    async with stack.browser(token("ivo")) as ivo:
        own = await upload(ivo, headers=key)
        assert own.status_code == 201
        assert own.headers["location"] != first.headers["location"]


async def test_a_key_whose_import_was_terminated_is_free(stack: Stack) -> None:
    key = {"idempotency-key": "registrations of June"}
    async with stack.browser(token("ina")) as ina:
        ids: list[str] = []
        for _ in range(3):
            made = await upload(ina, headers=key)
            assert made.status_code == 201
            ids.append(made.json()["identifier"])
            again = await upload(ina, headers=key)
            assert again.json()["identifier"] == ids[-1]
            await stack.client.get_workflow_handle(workflow_id(ids[-1])).terminate()
        assert len(set(ids)) == 3
        states = [(await ina.get(f"/api/imports/{id}")).json() for id in ids[:2]]
        assert [each["status"] for each in states] == ["TERMINATED"] * 2
        assert f"its run {workflow_id(ids[0])} was terminated at" in states[0]["reason"]
        other = await upload(ina, sheet(HEADER, *GOOD[:1]), headers=key)
        assert other.status_code == 201
        await sign_in(ina, token("ina"))
        page = (await ina.get(f"/uploads/{ids[0]}")).text
        assert "The run of the upload was terminated" in page and "Why it has ended" in page


async def test_uploads_of_one_key_race(stack: Stack) -> None:
    other = stack.gateway()
    key = {"idempotency-key": "race"}
    async with (
        stack.browser(token("rosa")) as here,
        stack.browser(token("rosa"), app=other) as there,
    ):
        answers = await asyncio.gather(
            *(upload(browser, headers=key) for browser in (here, there) * 4)
        )
        assert [answer.status_code for answer in answers] == [201] * 8
        assert len({answer.headers["location"] for answer in answers}) == 1
        assert len(await imports_of(here, "rosa")) == 1

        key = {"idempotency-key": "race of different files"}
        files = [sheet(HEADER, *GOOD), sheet(HEADER, *GOOD[:1])]
        answers = await asyncio.gather(
            *(upload(here, content, headers=key) for content in files * 3)
        )
        assert sorted(answer.status_code for answer in answers) == [201] * 3 + [422] * 3
        assert len(await imports_of(here, "rosa")) == 2


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_keys_have_a_length(stack: Stack, key: str) -> None:
    async with stack.browser() as anna:
        assert (await upload(anna, headers={"idempotency-key": key})).status_code == 422


async def test_a_large_file_takes_no_memory_and_no_time_after_its_last_byte(
    stack: Stack,
) -> None:
    """Through a real server; the answer waits for nothing that grows with the file."""
    row = b"Anna,Meier,anna%07d@example.org,Senior (18+),a comment that makes the row longer\r\n"
    rows, last_byte = 400_000, 0.0

    async def body() -> AsyncIterator[bytes]:
        nonlocal last_byte
        yield (
            b"--b\r\nContent-Disposition: form-data; name=importType\r\n\r\nEVENT_PARTICIPANT\r\n"
            b"--b\r\nContent-Disposition: form-data; name=contextId\r\n\r\n7\r\n"
            b'--b\r\nContent-Disposition: form-data; name=file; filename="large.csv"\r\n\r\n'
            b"First name,Last name,Email,Category,Comment\r\n"
        )
        for start in range(0, rows, 1000):
            yield b"".join(row % number for number in range(start, start + 1000))
        yield b"--b--\r\n"
        last_byte = time.perf_counter()

    headers = {"content-type": "multipart/form-data; boundary=b"}
    async with (
        served(stack.app) as address,
        stack.browser(token("lara"), address=address) as lara,
    ):
        process = psutil.Process()
        before = process.memory_info().rss
        answer = await lara.post("/api/imports", content=body(), headers=headers)
        waited = time.perf_counter() - last_byte
        grown = process.memory_info().rss - before
        assert answer.status_code == 201, answer.text
        await lara.delete(answer.headers["location"])
    assert waited < 3
    assert grown < 60 << 20
