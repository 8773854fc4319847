// Buys, connects and ends a session by the tools: node buy.mjs PACKAGE ERA TRANSPORT, where PACKAGE is sdk or
// client, ERA is legacy or a version of the protocol, and TRANSPORT is the URL of the tools or the path of apx.
const [, , pkg, era, where] = process.argv;
const key = process.env.AGENTPROXY_API_KEY;

async function open() {
  const info = { name: "e2e", version: "1" };
  const http = where.startsWith("http");
  const requestInit = { headers: { "X-API-Key": key } };
  const env = { ...process.env };
  if (pkg === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const client = new Client(info);
    await client.connect(http ? new StreamableHTTPClientTransport(new URL(where), { requestInit })
      : new StdioClientTransport({ command: where, args: ["mcp"], env }));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client(info, { versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } } });
  await client.connect(http ? new StreamableHTTPClientTransport(new URL(where), { requestInit })
    : new StdioClientTransport({ command: where, args: ["mcp"], env }));
  return client;
}

const client = await open();
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  const answer = JSON.parse(result.content[0].text);
  console.log(name, result.isError ? "refused " + answer.code : "ok");
  return answer;
};
const { tools } = await client.listTools();
console.log("tools", tools.length);
await call("get_account", {});
const wish = { product_no: "dyn_fast_1", traffic_gb: 0.1 };
const quote = await call("quote", wish);
const bought = await call("create_session", { ...wish, max_cost: quote.cost, purchase_id: `${pkg} ${era} ${where}` });
await call("check_proxy", { session_id: bought.session_id });
const connected = await call("connect", { session_id: bought.session_id, client: "undici" });
if (connected.password !== "***") throw new Error("the password is shown");
await call("report", { session_id: bought.session_id, events: [{ event_type: "success", status_code: 200 }] });
await call("end_session", { session_id: bought.session_id });
await call("get_session", { session_id: "sess_none" });
await client.close();
