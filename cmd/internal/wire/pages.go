package wire

import (
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/httpapi/pages"
	"agentproxy/adapters/mcp"
)

// toolTable returns the tools of agents as the pages show them.
func toolTable() (list []pages.Tool) {
	for _, t := range mcp.Listings() {
		list = append(list, pages.Tool{Name: t.Name, Scope: t.Scope, Does: t.Description})
	}
	return list
}

// gatewayErrors returns the codes of the gateway as the pages show them.
func gatewayErrors() (list []pages.Refusal) {
	for _, r := range refusal.Documented() {
		list = append(list, pages.Refusal{Code: r.Code.String(), Status: r.Status, Retryable: r.Retryable(),
			Message: r.Message + "; " + r.HowToFix})
	}
	return list
}
