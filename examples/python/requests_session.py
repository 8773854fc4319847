"""One proxied request with requests: buy a session, use it, report, end it.

Needs requests (Debian: python3-requests). AGENTPROXY_URL is the API's address,
AGENTPROXY_API_KEY your key (without one a new account is registered), and
TARGET the page to fetch.
"""

import os
import uuid

import requests

API = os.environ.get("AGENTPROXY_URL", "http://127.0.0.1:8080").rstrip("/").removesuffix("/v1") + "/v1"
TARGET = os.environ.get("TARGET", API + "/ip")

api = requests.Session()
api.trust_env = False  # the API is reached directly


def call(method, path, body=None, **headers):
    """Calls the API and returns the envelope's data."""
    answer = api.request(method, API + path, json=body, headers=headers, timeout=30).json()
    if not answer["success"]:
        raise SystemExit(f"{answer['error']['code']}: {answer['error']['message']}")
    return answer["data"]


key = os.environ.get("AGENTPROXY_API_KEY") or call("POST", "/account/register", {"name": "requests example"})["api_key"]
api.headers["X-API-Key"] = key

session = call("POST", "/sessions", {
    "type": "dynamic",
    "config": {"product_no": "dyn_fast_1", "traffic_gb": 0.1},
    "max_cost": 1,  # a dearer session is refused
}, **{"Idempotency-Key": str(uuid.uuid4())})  # a retry with the same key buys once
path = "/sessions/" + session["session_id"]

try:
    proxy = session["proxy"]["http_url"]
    page = requests.get(TARGET, proxies={"http": proxy, "https": proxy}, timeout=30)
    print(page.status_code, page.text[:200])

    event = {"event_type": "success" if page.ok else "http_error", "status_code": page.status_code}
    print(call("POST", path + "/report-event", event)["session_health"]["recommendation"])
finally:
    print(call("POST", path + "/terminate")["status"])  # what was not used is refunded
