// What the programs of this folder share: an account, a session, and its end.
const service = process.env.AGENTPROXY_URL ?? "http://127.0.0.1:8080"; // with or without /v1
const API = service.replace(/\/+(v1)?\/*$/, "") + "/v1";

/** target is the page that the programs fetch. */
export const target = process.env.TARGET ?? `${API}/ip`;

let key = process.env.AGENTPROXY_API_KEY;

/** call calls the API and returns the envelope's data. */
export async function call(method, path, body, headers = {}) {
  const response = await fetch(API + path, {
    method,
    headers: { "Content-Type": "application/json", ...(key && { "X-API-Key": key }), ...headers },
    body: body && JSON.stringify(body),
  });
  const { success, data, error } = await response.json();
  if (!success) throw new Error(`${error.code}: ${error.message}`);
  return data;
}

/** withSession buys a session, hands it to fn, and ends it: what was not used is refunded. */
export async function withSession(name, fn) {
  key ??= (await call("POST", "/account/register", { name })).api_key;
  const session = await call("POST", "/sessions", {
    type: "dynamic",
    config: { product_no: "dyn_fast_1", traffic_gb: 0.1 },
    max_cost: 1, // a dearer session is refused
  }, { "Idempotency-Key": crypto.randomUUID() }); // a retry with the same key buys once
  try {
    await fn(session);
  } finally {
    const { status } = await call("POST", `/sessions/${session.session_id}/terminate`);
    console.log(status);
  }
}
