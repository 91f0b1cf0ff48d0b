"""The clients of HTTP that a run records: each sends a request, and returns the status and the text of the reply."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import aiohttp
import httpx
import httpx2
import requests

Client = Callable[[str, bytes | None, Mapping[str, str]], tuple[int, str]]


def method_of(body: bytes | None) -> str:
    return "GET" if body is None else "POST"


def by_httpx(
    url: str, body: bytes | None, headers: Mapping[str, str], library: Any = httpx
) -> tuple[int, str]:
    response = library.request(method_of(body), url, content=body, headers=headers)
    return response.status_code, response.text


def by_httpx_stream(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str]:
    with httpx.stream(method_of(body), url, content=body, headers=headers) as response:
        return response.status_code, b"".join(response.iter_raw()).decode()


def by_async_httpx(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str]:
    async def ask() -> tuple[int, str]:
        async with (
            httpx.AsyncClient() as client,
            client.stream(method_of(body), url, content=body, headers=headers) as response,
        ):
            lines = [line async for line in response.aiter_lines()]
            return response.status_code, "\n".join(lines)

    return asyncio.run(ask())


def by_requests(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str]:
    response = requests.request(method_of(body), url, data=body, headers=dict(headers), timeout=10)
    return response.status_code, response.text


def by_requests_stream(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str]:
    with requests.Session() as session:
        response = session.request(
            method_of(body), url, data=body, headers=dict(headers), stream=True, timeout=10
        )
        lines = [line.decode() for line in response.iter_lines()]
        return response.status_code, "\n".join(lines)


def by_urllib(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str]:
    request = urllib.request.Request(url, body, dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def by_aiohttp(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str]:
    async def ask() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method_of(body), url, data=body, headers=headers) as response,
        ):
            lines = [line.decode().rstrip("\n") async for line in response.content]
            return response.status, "\n".join(lines)

    return asyncio.run(ask())


CLIENTS: dict[str, Client] = {
    "httpx": by_httpx,
    "httpx2": partial(by_httpx, library=httpx2),
    "httpx stream": by_httpx_stream,
    "httpx async stream": by_async_httpx,
    "requests": by_requests,
    "requests stream": by_requests_stream,
    "urllib": by_urllib,
    "aiohttp": by_aiohttp,
}
