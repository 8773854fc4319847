package mcp

import (
	"slices"

	"agentproxy/domain/connect"
)

// Arguments that several tools have.
var (
	sessionID = field{name: "session_id", kind: "string", required: true, segment: true}
	oneWorker = field{name: "worker", kind: "string", most: 32, segment: true,
		doc: "Of a dynamic session; left out: its own exit."}
	maxCost    = field{name: "max_cost", kind: "number", required: true, doc: "US dollars. A dearer purchase is refused."}
	purchaseID = field{name: "purchase_id", kind: "string", required: true, key: true,
		doc: "Any new text for each purchase. The same text buys once: reuse it to repeat a call whose answer was lost."}
	days           = field{name: "duration_days", kind: "integer", doc: "Static: one that the product lists."}
	purchaseFields = []field{
		{name: "product_no", kind: "string", required: true, doc: "From find_products."},
		{name: "traffic_gb", kind: "number", doc: "Dynamic; 1 is the default."},
		{name: "quantity", kind: "integer", doc: "Static: IPs."},
		days,
		{name: "country", kind: "string", doc: "ISO 3166-1 alpha-2."},
		{name: "city", kind: "string"},
	}
)

// tools is the table of tools, in the order of their use.
var tools = []tool{
	{
		name: "get_account", title: "Account and money", scope: "account:read", reads: true, repeatable: true,
		description: "Tier, balance, money held by sessions, trial credit, what the budget leaves for today, limits.",
		run:         taking(getAccount),
	},
	{
		name: "find_products", title: "Find products", scope: "products:read", reads: true, repeatable: true,
		description: "At most 8 products that fit, the best first, with price, places and why. " +
			"dynamic: pay by GB, exits change on request. static: pay by IP and days, the IP stays.",
		args: []field{
			{name: "type", kind: "string", enum: []string{"dynamic", "static"}},
			{name: "country", kind: "string", doc: "ISO 3166-1 alpha-2."},
			{name: "city", kind: "string"},
			{name: "use_case", kind: "string", enum: []string{"web_scraping", "data_collection", "account_management",
				"ad_verification", "seo_monitoring", "market_research", "general"}},
			{name: "gb", kind: "number", doc: "Traffic that is needed."},
			{name: "budget", kind: "number", doc: "US dollars for all of it."},
		},
		run: taking(findProducts),
	},
	{
		name: "quote", title: "Price of a purchase", scope: "products:read", reads: true, repeatable: true,
		description: "What create_session would cost and leave, with every check it makes. Buys nothing.",
		args:        purchaseFields,
		out: []field{
			{name: "cost", kind: "number", required: true},
			{name: "balance_after", kind: "number", required: true},
			{name: "currency", kind: "string", required: true},
			{name: "next_step", kind: "string", required: true},
		},
		run: taking(quote),
	},
	{
		name: "create_session", title: "Buy a session", scope: "sessions:write", repeatable: true,
		description: "Buys a proxy session with real money. It lives until its traffic or time is used up, or end_session. " +
			"Unused traffic comes back at the end, unused days of fixed IPs do not.",
		args: append(purchaseFields[:len(purchaseFields):len(purchaseFields)],
			field{name: "rotation", kind: "string", enum: []string{"on_demand", "timed", "fixed"},
				doc: "Dynamic; on_demand is the default."},
			field{name: "rotation_seconds", kind: "integer", doc: "With timed."}, maxCost, purchaseID),
		out: []field{{name: "session_id", kind: "string", required: true}, {name: "status", kind: "string", required: true},
			{name: "cost", kind: "number", required: true}, {name: "next_step", kind: "string", required: true}},
		run: taking(createSession),
	},
	{
		name: "list_sessions", title: "List sessions", scope: "sessions:read", reads: true, repeatable: true,
		description: "The account's sessions, the newest first, 20 a page: what is left, health, risk.",
		args: []field{
			{name: "status", kind: "string", enum: []string{"creating", "active", "terminated", "expired", "failed"}},
			{name: "type", kind: "string", enum: []string{"dynamic", "static"}},
			{name: "page", kind: "integer"},
		},
		run: taking(listSessions),
	},
	{
		name: "get_session", title: "One session", scope: "sessions:read", reads: true, repeatable: true,
		description: "State, usage, cost, health with its reason, and the last 5 failures, seen or reported.",
		args:        []field{sessionID},
		run:         taking(getSession),
	},
	{
		name: "connect", title: "Use a session", scope: "sessions:read", repeatable: true,
		description: "How a client uses the session's proxy: host, port, user name and a snippet, with *** as the " +
			"password, and where your program gets the password. Never ask for the password itself or print it.",
		args: []field{
			sessionID,
			{name: "client", kind: "string", enum: connect.Names(), doc: "curl is the default."},
			{name: "workers", kind: "string", most: 2000, orNumber: true,
				doc: "Each has an exit of its own: how many, named w1 and so on, or names separated by commas."},
			{name: "country", kind: "string", doc: "Of the exits; ISO 3166-1 alpha-2."},
			{name: "reveal", kind: "boolean", doc: "The credentials in the answer, only where the operator allows it."},
		},
		run: taking(connectSession),
	},
	{
		name: "rotate", title: "Change the exit", scope: "sessions:write", repeatable: true,
		description: "Gives a dynamic session, or a worker of it, another exit. The credentials stay valid; open " +
			"connections finish on the old exit.",
		args: []field{
			sessionID, oneWorker,
			{name: "reason", kind: "string",
				enum: []string{"http_403", "http_429", "captcha", "timeout", "block", "scheduled", "manual"}},
			{name: "request_id", kind: "string", key: true, doc: "The same text rotates once."},
		},
		run: taking(rotate),
	},
	{
		name: "report", title: "Report results", scope: "telemetry:write",
		description: "Report the outcome of 1 to 50 requests. Answers whether to go on, rotate or pause.",
		args: []field{
			sessionID,
			{name: "events", kind: "array", required: true, most: 50, items: []field{
				{name: "event_type", kind: "string", required: true,
					enum: []string{"success", "http_error", "captcha", "timeout", "block", "rate_limit", "custom"}},
				{name: "status_code", kind: "integer"},
				{name: "latency_ms", kind: "number"},
				{name: "target_host", kind: "string"},
				{name: "error_message", kind: "string", most: 1000},
				{name: "worker", kind: "string", most: 32},
			}},
		},
		run: taking(report),
	},
	{
		name: "diagnose", title: "Why a request failed", scope: "sessions:read", reads: true, repeatable: true,
		description: "Joins what your client saw with what the gateway saw: causes, the most certain first, " +
			"what to do, whether to retry.",
		args: []field{
			sessionID,
			{name: "error_text", kind: "string", most: 4000, doc: "The client's error as it is."},
			{name: "status", kind: "integer", doc: "Of the answer, if there was one."},
			{name: "client", kind: "string", most: 64, doc: "curl, playwright, requests …"},
			{name: "target_host", kind: "string", most: 253, doc: "Of the request; what happened to others counts less then."},
		},
		run: taking(diagnoseFailure),
	},
	{
		name: "check_proxy", title: "Try a session", scope: "sessions:write", repeatable: true, open: true,
		description: "Opens one connection through the session's exit: address, milliseconds, and in exit what was " +
			"measured; null is unknown. Free; 10 a minute. " +
			"With url it also fetches that page, which is charged: status, bytes, whether it looks blocked.",
		args: []field{sessionID, oneWorker, {name: "ip", kind: "string"}, {name: "url", kind: "string"}},
		run:  taking(checkProxy),
	},
	{
		name: "renew_session", title: "Extend a static session", scope: "sessions:write", repeatable: true,
		description: "Buys more days for a static session with real money.",
		args:        []field{sessionID, days, maxCost, purchaseID},
		run:         taking(renewSession),
	},
	{
		name: "end_session", title: "End a session", scope: "sessions:write", destroys: true, repeatable: true,
		description: "Ends a session for good. What a dynamic session did not use comes back. Fixed IPs are paid for their " +
			"whole time: the days left are not refunded (forfeited).",
		args: []field{sessionID},
		run:  taking(endSession),
	},
	{
		name: "recharge", title: "Add money", scope: "billing:write", repeatable: true,
		description: "Orders a recharge in USDT on TRON: where a person sends it, until when, and a QR code. " +
			"It moves no money itself.",
		args: []field{
			{name: "amount", kind: "number", required: true, doc: "US dollars, 1 to 10000, at most 2 decimals."},
			purchaseID,
		},
		run: taking(recharge),
	},
	{
		name: "wait_for_events", title: "Wait for events", scope: "account:read", reads: true, repeatable: true,
		description: "What happened to the account behind after, or else the first thing that happens within seconds: a " +
			"recharge that is paid, a session that is active, low or over. Call it again with next.",
		args: []field{
			{name: "after", kind: "string", most: 64, doc: "The next of the answer before; left out: from the oldest."},
			{name: "types", kind: "string", most: 1000, doc: "With commas: recharge.paid,session.active; left out: all."},
			{name: "seconds", kind: "integer", doc: "0 to 25; 25 is the default."},
		},
		run: taking(waitForEvents),
	},
}

// isTool reports whether a name is that of a tool that may be called.
func isTool(name string, may func(scope string) bool) bool {
	return slices.ContainsFunc(tools, func(t tool) bool { return t.name == name && may(t.scope) })
}
