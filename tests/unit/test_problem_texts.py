"""What is wrong with a request, for people: without the words of the library that checked it."""

import httpx
from fastapi import FastAPI
from pydantic import BaseModel, field_validator

from workers.shared.gateway.http.problems import handle_problems


class Box(BaseModel):
    corners: int

    @field_validator("corners")
    @classmethod
    def _four(cls, corners: int) -> int:
        if corners != 4:
            raise ValueError("a box has four corners")
        return corners


async def test_a_validator_of_ours_is_quoted_alone() -> None:
    app = FastAPI()
    handle_problems(app, {})

    @app.post("/boxes")
    async def make(box: Box) -> None: ...  # pyright: ignore[reportUnusedFunction]

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        refused = await client.post("/boxes", json={"corners": 3})
    assert refused.json()["errors"] == [
        {"location": "body.corners", "message": "a box has four corners"}
    ]
