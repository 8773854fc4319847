// Registers and buys with the clients of two generators, and prints the status of each purchase.
import createFetch from "openapi-fetch";
import type { paths } from "./schema.js";
import { createClient, createConfig } from "./hey/client/index.js";
import { createSession, register } from "./hey/sdk.gen.js";

declare const process: { argv: string[] };
const baseUrl = process.argv[2]!;

const idOf = (data: object) => ("session_id" in data ? data.session_id : "a dry run");

function some<T>(answer: { data?: T; error?: unknown }): T {
  if (!answer.data) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const fetching = createFetch<paths>({ baseUrl });
const first = some(await fetching.POST("/account/register", { body: { name: "openapi-typescript" } }));
const nested = await fetching.POST("/sessions", {
  headers: { "X-API-Key": first.data.api_key },
  body: { type: "dynamic", config: { product_no: "dyn_fast_1", traffic_gb: 1 } },
});
console.log(nested.response.status, idOf(some(nested).data));

const client = createClient(createConfig({ baseUrl }));
const second = some(await register({ client, body: { name: "openapi-ts" } }));
client.setConfig({ headers: { "X-API-Key": second.data.api_key } });
const flat = await createSession({ client, body: { session_type: "dynamic", product_no: "dyn_fast_1", traffic_gb: 1 } });
console.log(flat.response?.status, idOf(some(flat).data));
