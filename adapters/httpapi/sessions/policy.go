package sessions

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/net/idna"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/domain/account"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
)

const policyDoc = `The operator's rules and those of the product come first. deny refuses what it matches.
Where allow has hosts or networks a target must match one of them, and where it has ports one of these. A refusal is
403 TARGET_DENIED of the gateway with layer session and the rule. With the mode report everything passes, and the
events of the session list what would be refused. Holds on every replica within a second; open tunnels to a target
that becomes denied are cut.`

const ruleDoc = `A host (example.com), a host with everything below it (.example.com), a network (192.0.2.0/24),
a port (22) or a range (6660-6669).`

// policyBody is the rules of a session, as they are sent and answered.
type policyBody struct {
	Mode  policy.Mode `json:"mode,omitempty" doc:"enforce is the default."`
	Allow []rule      `json:"allow,omitempty" nullable:"true" maxItems:"1000" doc:"Nothing else may be reached. With deny at most 1000 rules."`
	Deny  []rule      `json:"deny,omitempty" nullable:"true" maxItems:"1000" doc:"May not be reached; it wins over allow."`
	Ports []port      `json:"ports,omitempty" nullable:"true" maxItems:"1000" doc:"The only ports that may be reached; empty is every port."`
}

type policyReply struct {
	Mode  policy.Mode `json:"mode" doc:"What becomes of a target that the rules refuse."`
	Allow []rule      `json:"allow" doc:"Nothing else may be reached; empty is everything."`
	Deny  []rule      `json:"deny" doc:"What may not be reached; it wins over allow."`
	Ports []port      `json:"ports" doc:"The only ports that may be reached; empty is every port."`
}

// rule is a rule of a policy: a text, or a port that is sent as a number.
type rule string

// UnmarshalJSON keeps a text or a number.
func (r *rule) UnmarshalJSON(b []byte) error { return unmarshalRule((*string)(r), b) }

// Schema describes the type in the document.
func (rule) Schema(r huma.Registry) *huma.Schema {
	const name = "PolicyEntry"
	r.Map()[name] = &huma.Schema{Description: ruleDoc, OneOf: []*huma.Schema{
		{Type: huma.TypeString, MaxLength: new(260)}, portNumber()}}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// port is a port or a range of ports.
type port string

// UnmarshalJSON keeps a text or a number.
func (p *port) UnmarshalJSON(b []byte) error { return unmarshalRule((*string)(p), b) }

// AppendJSON appends the value: a single port as a number. A range needs no escapes.
func (p port) AppendJSON(b []byte) []byte {
	if n, err := strconv.ParseUint(string(p), 10, 16); err == nil {
		return strconv.AppendUint(b, n, 10)
	}
	return strconv.AppendQuote(b, string(p))
}

// MarshalJSON writes a number, or a text.
func (p port) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (port) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "A port, or a range such as 8000-8010.", OneOf: []*huma.Schema{
		{Type: huma.TypeString, MaxLength: new(260)}, portNumber()}}
}

func portNumber() *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(65535.0)}
}

func unmarshalRule(to *string, b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, to)
	}
	*to = string(b)
	return nil
}

// own returns the policy as the domain checks it. Trimmed and with international names in
// ASCII; a name that is none stays as it is, and is refused.
func (b policyBody) own() policy.Own {
	o := policy.Own{Mode: b.Mode}
	for _, r := range b.Allow {
		o.Allow = append(o.Allow, asciiRule(string(r)))
	}
	for _, r := range b.Deny {
		o.Deny = append(o.Deny, asciiRule(string(r)))
	}
	for _, p := range b.Ports {
		o.Ports = append(o.Ports, strings.TrimSpace(string(p)))
	}
	return o
}

// asciiRule writes an international name of a rule in ASCII.
func asciiRule(text string) string {
	text = strings.TrimSpace(text)
	if !strings.ContainsFunc(text, func(c rune) bool { return c > 0x7e }) {
		return text
	}
	name, below := strings.CutPrefix(text, ".")
	ascii, err := idna.Lookup.ToASCII(name)
	switch {
	case err != nil:
		return text
	case below:
		return "." + ascii
	}
	return ascii
}

func toPolicy(o policy.Own) policyReply {
	r := policyReply{Mode: o.Mode, Allow: []rule{}, Deny: []rule{}, Ports: []port{}}
	for _, text := range o.Allow {
		r.Allow = append(r.Allow, rule(text))
	}
	for _, text := range o.Deny {
		r.Deny = append(r.Deny, rule(text))
	}
	for _, text := range o.Ports {
		r.Ports = append(r.Ports, port(text))
	}
	return r
}

type setPolicyInput struct {
	sessionview.OneSession
	Body policyBody
}

// declarePolicy declares the rules of a session about its targets.
func (s *service) declarePolicy() {
	example := toPolicy(policy.Own{Mode: policy.Enforce, Deny: []string{".ads.example", "192.0.2.0/24"},
		Ports: []string{"80", "443", "8000-8010"}})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-session-policy",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/policy",
		Tag:     "sessions",
		Summary: "What a session may reach",
		Doc:     "By its own rules. Those of the operator and of the product come first and are not shown.",
		Scope:   account.SessionsRead,
		Refuses: sessionview.OfSession,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The policy.", Data: example}},
	}, func(ctx context.Context, in *sessionview.OneSession) (int, policyReply, error) {
		own, err := s.Policies.Get(ctx, endpoint.Caller(ctx), in.SessionID)
		endpoint.ChargeRead(ctx, own.Rules())
		return http.StatusOK, toPolicy(own), err
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:        "set-session-policy",
		Keys:      endpoint.OwnSession,
		Stores:    true,
		Method:    http.MethodPut,
		Path:      "/sessions/{session_id}/policy",
		Tag:       "sessions",
		Summary:   "Change what a session may reach",
		Scope:     account.SessionsWrite,
		EmptyBody: true,
		Doc:       "Replaces the whole policy. " + policyDoc,
		Refuses:   endpoint.And(sessionview.OfSession, session.ErrOver),
		OK:        []endpoint.Reply{{Status: http.StatusOK, Doc: "The policy after the change.", Data: example}},
		Example:   map[string]any{"mode": "enforce", "deny": []string{".ads.example"}, "ports": []any{80, 443, "8000-8010"}},
	}, func(ctx context.Context, in *setPolicyInput) (int, policyReply, error) {
		own := in.Body.own()
		if err := endpoint.Charge(ctx, own.Rules()); err != nil {
			return 0, policyReply{}, err
		}
		if endpoint.CallIn(ctx).Caller.Trial {
			if err := own.CheckTrial(""); err != nil {
				return 0, policyReply{}, err
			}
		}
		own, err := s.Policies.Put(ctx, endpoint.Caller(ctx), in.SessionID, own)
		return http.StatusOK, toPolicy(own), err
	})
}
