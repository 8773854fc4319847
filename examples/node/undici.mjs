// A proxied request with undici. Node's own fetch ignores proxies unless it is given a dispatcher.
import { ProxyAgent, request } from "undici";
import { call, target, withSession } from "./session.mjs";

await withSession("undici example", async ({ session_id, proxy }) => {
  const dispatcher = new ProxyAgent(proxy.http_url);
  const { statusCode, body } = await request(target, { dispatcher });
  console.log(statusCode, (await body.text()).slice(0, 200));
  await dispatcher.close();

  const event = { event_type: statusCode < 400 ? "success" : "http_error", status_code: statusCode };
  const { session_health } = await call("POST", `/sessions/${session_id}/report-event`, event);
  console.log(session_health.recommendation);
});
