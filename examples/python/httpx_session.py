"""Proxied requests with httpx's asynchronous client, and a rotation between them.

Needs httpx (Debian: python3-httpx). AGENTPROXY_URL is the API's address,
AGENTPROXY_API_KEY your key (without one a new account is registered), and
TARGET the page to fetch.
"""

import asyncio
import inspect
import os
import uuid

import httpx

API = os.environ.get("AGENTPROXY_URL", "http://127.0.0.1:8080").rstrip("/").removesuffix("/v1") + "/v1"
TARGET = os.environ.get("TARGET", API + "/ip")
# httpx 0.26 renamed the argument.
PROXY = "proxy" if "proxy" in inspect.signature(httpx.AsyncClient).parameters else "proxies"


async def call(api, method, path, body=None, **headers):
    """Calls the API and returns the envelope's data."""
    answer = (await api.request(method, API + path, json=body, headers=headers)).json()
    if not answer["success"]:
        raise SystemExit(f"{answer['error']['code']}: {answer['error']['message']}")
    return answer["data"]


async def fetch(proxy):
    """Fetches TARGET through a proxy URL."""
    async with httpx.AsyncClient(**{PROXY: proxy}, timeout=30) as client:
        page = await client.get(TARGET)
        print(page.status_code, page.text[:200])


async def main():
    async with httpx.AsyncClient(timeout=30, trust_env=False) as api:  # the API is reached directly
        key = os.environ.get("AGENTPROXY_API_KEY")
        if not key:
            key = (await call(api, "POST", "/account/register", {"name": "httpx example"}))["api_key"]
        api.headers["X-API-Key"] = key
        session = await call(api, "POST", "/sessions", {
            "type": "dynamic",
            "config": {"product_no": "dyn_fast_1", "traffic_gb": 0.1},
            "max_cost": 1,  # a dearer session is refused
        }, **{"Idempotency-Key": str(uuid.uuid4())})  # a retry with the same key buys once
        path = "/sessions/" + session["session_id"]
        try:
            await fetch(session["proxy"]["http_url"])
            rotated = await call(api, "POST", path + "/rotate", {"reason": "scheduled"})
            await fetch(rotated["new_proxy"]["http_url"])  # another exit
        finally:
            print((await call(api, "POST", path + "/terminate"))["status"])


asyncio.run(main())
