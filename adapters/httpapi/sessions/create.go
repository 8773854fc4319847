package sessions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

const createDoc = `Takes either of two forms. Nested: type and config. Flat: session_type and the fields of the
session at the top level. A body with config is nested. max_cost and provisioning_mode count in both places. Rules that
depend on the product are in GET /products.`

// createBody is the body of a create call in both of its forms.
type createBody struct {
	_      struct{}      `json:"-" additionalProperties:"true"`
	Type   string        `json:"type,omitempty" nullable:"true"`
	Config *createConfig `json:"config,omitempty" doc:"Makes the body nested."`

	SessionType      string        `json:"session_type,omitempty" nullable:"true"`
	ProductNo        string        `json:"product_no,omitempty" nullable:"true"`
	Quantity         value.Decimal `json:"quantity,omitempty"`
	TrafficGB        value.Decimal `json:"traffic_gb,omitempty"`
	Duration         value.Decimal `json:"duration,omitempty"`
	CountryCode      string        `json:"country_code,omitempty" nullable:"true"`
	City             string        `json:"city,omitempty" nullable:"true" doc:"A city that the product offers in the country."`
	Protocol         string        `json:"protocol,omitempty" nullable:"true"`
	RotationMode     string        `json:"rotation_mode,omitempty" nullable:"true" doc:"on_demand is the default. timed needs rotation_interval_seconds. fixed never rotates by itself."`
	RotationInterval value.Decimal `json:"rotation_interval_seconds,omitempty" nullable:"true" doc:"Seconds between two timed rotations; for mode timed."`

	ProvisioningMode string        `json:"provisioning_mode,omitempty" nullable:"true"`
	MaxCost          value.Decimal `json:"max_cost,omitempty"`

	Labels     value.Labels `json:"labels,omitempty" doc:"Your own words for the session. Both forms."`
	AllowedIPs []string     `json:"allowed_ips,omitempty" maxItems:"32" doc:"Addresses and networks (CIDR) that clients may connect from; empty is anywhere. Both forms."`

	AutoTopUp *autoTopUpBody `json:"auto_top_up,omitempty" doc:"What a dynamic session buys by itself. Both forms."`

	Require *sessionview.Require `json:"require,omitempty" doc:"What exits must be; {}: anything. It stays with the session."`

	Policy *policyBody `json:"policy,omitempty" doc:"What the session may reach, as in PUT /sessions/{session_id}/policy. Both forms."`
}

// createConfig is the config of the nested form.
type createConfig struct {
	_                struct{}        `json:"-" additionalProperties:"true"`
	ProductNo        string          `json:"product_no"`
	TrafficGB        value.Decimal   `json:"traffic_gb,omitempty"`
	Quantity         value.Decimal   `json:"quantity,omitempty"`
	DurationDays     value.Decimal   `json:"duration_days,omitempty"`
	Country          string          `json:"country,omitempty" nullable:"true"`
	City             string          `json:"city,omitempty" nullable:"true" doc:"A city that the product offers in the country."`
	Protocol         string          `json:"protocol,omitempty" nullable:"true"`
	Rotation         *createRotation `json:"rotation,omitempty" doc:"When the exit changes."`
	ProvisioningMode string          `json:"provisioning_mode,omitempty" nullable:"true" doc:"existing attaches to the newest live session of the product. purchase is the default."`
	MaxCost          value.Decimal   `json:"max_cost,omitempty" doc:"US dollars with at most 6 decimals; a dearer session is refused."`
}

type createRotation struct {
	_               struct{}      `json:"-" additionalProperties:"true"`
	Mode            string        `json:"mode,omitempty" nullable:"true"`
	IntervalSeconds value.Decimal `json:"interval_seconds,omitempty" nullable:"true" doc:"Seconds between two timed rotations; for mode timed."`
}

// The bounds of the fields, by the names that the domain gives them. Both forms
// and the renewal share them.
var createBounds = map[string]huma.Schema{
	"type":       {Enum: openapi.OneOf(session.Types...)},
	"product_no": {MaxLength: new(session.MaxLabel)},
	// An integer of a static session, a number of GB in the flat form. The most of either is the product's.
	"quantity":      {ExclusiveMinimum: new(0.0)},
	"traffic_gb":    {ExclusiveMinimum: new(0.0)},
	"duration_days": {Minimum: new(1.0), Maximum: new(float64(session.MaxDays)), MultipleOf: new(1.0)},
	"country":       {Pattern: "^([A-Za-z]{2})?$", PatternDescription: "an ISO 3166-1 alpha-2 code"},
	"city": {Pattern: fmt.Sprintf("^%s{0,%d}$", session.LabelClass, session.MaxLabel),
		PatternDescription: fmt.Sprintf("at most %d of A-Z, a-z, 0-9, _ and -", session.MaxLabel)},
	"protocol":      {Enum: openapi.OneOf(session.Protocols...)},
	"rotation.mode": {Enum: openapi.OneOf(session.RotationModes...)},
	"rotation.interval_seconds": {
		Minimum:    new(session.MinInterval.Seconds()),
		Maximum:    new(session.MaxInterval.Seconds()),
		MultipleOf: new(1.0),
	},
	"provisioning_mode": {Enum: openapi.OneOf(session.ProvisioningModes...)},
	"max_cost":          {ExclusiveMinimum: new(0.0)},
}

// flatNames are the fields that the flat form names in another way than the domain.
var flatNames = map[string]string{
	"type":                      "session_type",
	"duration_days":             "duration",
	"country":                   "country_code",
	"rotation.mode":             "rotation_mode",
	"rotation.interval_seconds": "rotation_interval_seconds",
}

// TransformSchema sets the bounds and the descriptions of the flat form.
func (createBody) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	openapi.Amend(s, "type", createBounds["type"], "Required in the nested form.")
	for name, bounds := range createBounds {
		flat := cmp.Or(flatNames[name], name)
		openapi.Amend(s, flat, bounds, flatDocs[flat])
	}
	return s
}

// TransformSchema sets the bounds and the descriptions of the nested form.
func (createConfig) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	for name := range s.Properties {
		openapi.Amend(s, name, createBounds[name], configDocs[name])
	}
	return s
}

// TransformSchema sets the bounds and the descriptions.
func (createRotation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	openapi.Amend(s, "mode", createBounds["rotation.mode"],
		"on_demand is the default. timed needs interval_seconds. fixed never rotates by itself.")
	openapi.Amend(s, "interval_seconds", createBounds["rotation.interval_seconds"], "")
	return s
}

var flatDocs = map[string]string{
	"session_type":      "Required in the flat form.",
	"product_no":        "Flat form, like the fields that follow.",
	"quantity":          "Static: IPs, 1 to 100. Dynamic without traffic_gb: GB.",
	"traffic_gb":        "At most 3 decimals.",
	"duration":          "Days. The product's shortest is the default.",
	"country_code":      "The product's first is the default for a static session.",
	"protocol":          "http is the default.",
	"provisioning_mode": "existing attaches to the newest live session of the product. purchase is the default.",
	"max_cost":          "US dollars with at most 6 decimals; a dearer session is refused.",
}

var configDocs = map[string]string{
	"product_no":    "A product of GET /products.",
	"traffic_gb":    "Dynamic. At most 3 decimals, within the product's bounds; 1 is the default.",
	"quantity":      "Static: IPs, 1 to 100, required.",
	"duration_days": "Static: one that the product lists, required.",
	"country":       "One that the product offers, in any case. Required for a static session.",
	"protocol":      "Both work on the same port; the choice shapes full_url. http is the default.",
}

// request returns the body as the domain checks it, whichever form it has.
func (b createBody) request() (session.CreateRequest, error) {
	if b.Config == nil {
		return b.flat(), nil
	}
	c := b.Config
	if err := b.misplaced(); err != nil {
		return session.CreateRequest{}, err
	}
	switch {
	case c.MaxCost != "" && b.MaxCost != "" && c.MaxCost != b.MaxCost:
		return session.CreateRequest{}, domain.InvalidField("config.max_cost",
			"differs from max_cost at the top level; send one of them")
	case c.ProvisioningMode != "" && b.ProvisioningMode != "" && c.ProvisioningMode != b.ProvisioningMode:
		return session.CreateRequest{}, domain.InvalidField("config.provisioning_mode",
			"differs from provisioning_mode at the top level; send one of them")
	}
	r := session.CreateRequest{
		Type:             session.Type(b.Type),
		ProductNo:        c.ProductNo,
		Bytes:            c.TrafficGB.Bytes(),
		Quantity:         c.Quantity.Integer(),
		Days:             c.DurationDays.Integer(),
		Location:         session.Location{Country: c.Country, City: c.City},
		Protocol:         session.Protocol(c.Protocol),
		ProvisioningMode: session.ProvisioningMode(cmp.Or(b.ProvisioningMode, c.ProvisioningMode)),
		MaxCost:          cmp.Or(b.MaxCost, c.MaxCost).Money(),
		Labels:           session.Labels(b.Labels),
		AllowedIPs:       b.AllowedIPs,
		AutoTopUp:        b.AutoTopUp.setting(),
	}
	if c.Rotation != nil {
		r.RotationMode, r.RotationInterval = session.RotationMode(c.Rotation.Mode), c.Rotation.IntervalSeconds.Seconds()
	}
	return r, nil
}

// misplaced refuses a field of the flat form in a body of the nested one, which has no use for it.
func (b createBody) misplaced() error {
	var issues []domain.FieldIssue
	for _, f := range b.flatFields() {
		issues = append(issues, domain.FieldIssue{Field: f.name,
			Issue: "is not a field of a body with config; did you mean " + f.nested + "?"})
	}
	if issues == nil {
		return nil
	}
	return domain.InvalidFields(issues...)
}

// flatField is a field of the flat form and the path of the nested form that means the same.
type flatField struct{ name, value, nested string }

// flatFields returns the fields of the flat form alone that the body has.
func (b createBody) flatFields() []flatField {
	all := []flatField{
		{"session_type", b.SessionType, "type"}, {"product_no", b.ProductNo, "config.product_no"},
		{"quantity", string(b.Quantity), "config.quantity"}, {"traffic_gb", string(b.TrafficGB), "config.traffic_gb"},
		{"duration", string(b.Duration), "config.duration_days"}, {"country_code", b.CountryCode, "config.country"},
		{"city", b.City, "config.city"}, {"protocol", b.Protocol, "config.protocol"},
		{"rotation_mode", b.RotationMode, "config.rotation.mode"},
		{"rotation_interval_seconds", string(b.RotationInterval), "config.rotation.interval_seconds"},
	}
	return slices.DeleteFunc(all, func(f flatField) bool { return f.value == "" || f.value == "null" })
}

// flat returns a body of the flat form, whose quantity is the traffic of a
// dynamic session without traffic_gb.
func (b createBody) flat() session.CreateRequest {
	r := session.CreateRequest{
		Type:             session.Type(cmp.Or(b.SessionType, b.Type)),
		ProductNo:        b.ProductNo,
		Bytes:            b.TrafficGB.Bytes(),
		Quantity:         b.Quantity.Integer(),
		Days:             b.Duration.Integer(),
		Location:         session.Location{Country: b.CountryCode, City: b.City},
		Protocol:         session.Protocol(b.Protocol),
		RotationMode:     session.RotationMode(b.RotationMode),
		RotationInterval: b.RotationInterval.Seconds(),
		ProvisioningMode: session.ProvisioningMode(b.ProvisioningMode),
		MaxCost:          b.MaxCost.Money(),
		Labels:           session.Labels(b.Labels),
		AllowedIPs:       b.AllowedIPs,
		AutoTopUp:        b.AutoTopUp.setting(),
		ProductDefaults:  true,
	}
	if r.Type != session.Static && b.TrafficGB == "" {
		r.Bytes = b.Quantity.Bytes()
	}
	return r
}

// path returns the JSON path of a field of the domain in the form that was sent: the nested one
// where a body has nothing of the flat one, since that is the form of the examples.
func (b createBody) path(field string) string {
	switch {
	case b.Config == nil && field == "traffic_gb" && b.TrafficGB == "" && b.Quantity != "":
		return "quantity"
	case b.Config == nil && len(b.flatFields()) > 0:
		return cmp.Or(flatNames[field], field)
	case field == "type", field == "max_cost", field == "provisioning_mode", topLevel(field):
		return field
	}
	return "config." + field
}

// topLevel reports whether a field is at the top level of both forms.
func topLevel(field string) bool {
	name, _, _ := strings.Cut(field, ".")
	return name == "policy" || name == "labels" || name == "allowed_ips" || name == "auto_top_up" ||
		name == "require"
}

// renamed returns err with the fields of the domain replaced by the paths of the
// body that was sent.
func renamed(err error, path func(field string) string) error {
	e, ok := errors.AsType[*domain.Error](err)
	if !ok {
		return err
	}
	issues, ok := e.Details["fields"].([]domain.FieldIssue)
	if !ok {
		return err
	}
	sent := make([]domain.FieldIssue, len(issues))
	for i, issue := range issues {
		sent[i] = domain.FieldIssue{Field: path(issue.Field), Issue: issue.Issue}
	}
	return e.Msgf("%s", domain.InvalidFields(sent...).Message).With("fields", sent)
}

// documentForms makes one schema of each form of a create call.
func documentForms(schemas map[string]*huma.Schema) {
	nested, flat := map[string]*huma.Schema{}, maps.Clone(schemas["CreateRequest"].Properties)
	for _, name := range []string{"type", "config", "max_cost", "provisioning_mode", "labels", "allowed_ips", "policy",
		"require"} {
		nested[name] = flat[name]
	}
	delete(flat, "type")
	delete(flat, "config")
	form := func(text string, fields map[string]*huma.Schema, required ...string) *huma.Schema {
		for _, name := range required {
			if fields[name].Ref == "" {
				set := *fields[name]
				set.Nullable = false // null counts as absent
				fields[name] = &set
			}
		}
		return &huma.Schema{Type: huma.TypeObject, Properties: fields, Required: required, AdditionalProperties: true,
			Description: text}
	}
	schemas["CreateNested"] = form("The nested form.", nested, "type", "config")
	schemas["CreateFlat"] = form("The flat form.", flat, "session_type", "product_no")
	schemas["CreateRequest"] = &huma.Schema{Description: "Either form.", OneOf: []*huma.Schema{
		{Ref: "#/components/schemas/CreateNested"}, {Ref: "#/components/schemas/CreateFlat"}}}
}
