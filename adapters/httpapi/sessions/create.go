package sessions

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

const createDoc = `Takes either of two forms. Nested: type and config. Flat: session_type and the fields of the
session at the top level. A body with config is nested. max_cost and provisioning_mode count in both places. Rules that
depend on the product are in GET /products.`

// createBody is the body of a create call in both of its forms. A field of the flat form names the path of the nested
// one that means the same. The most of a quantity is the product's.
type createBody struct {
	_      struct{}      `json:"-" additionalProperties:"true"`
	Type   session.Type  `json:"type,omitempty" nullable:"true" doc:"Required in the nested form."`
	Config *createConfig `json:"config,omitempty" doc:"Makes the body nested."`

	SessionType      session.Type         `json:"session_type,omitempty" nested:"type" nullable:"true" doc:"Required in the flat form."`
	ProductNo        string               `json:"product_no,omitempty" nested:"config.product_no" nullable:"true" maxLength:"64" doc:"Flat form, like the fields that follow."`
	Quantity         value.Decimal        `json:"quantity,omitempty" nested:"config.quantity" exclusiveMinimum:"0" doc:"Static: IPs, 1 to 100. Dynamic without traffic_gb: GB."`
	TrafficGB        value.Decimal        `json:"traffic_gb,omitempty" nested:"config.traffic_gb" exclusiveMinimum:"0" doc:"At most 3 decimals."`
	Duration         value.Decimal        `json:"duration,omitempty" nested:"config.duration_days" minimum:"1" maximum:"3650" multipleOf:"1" doc:"Days. The product's shortest is the default."`
	CountryCode      string               `json:"country_code,omitempty" nested:"config.country" nullable:"true" pattern:"^([A-Za-z]{2})?$" patternDescription:"an ISO 3166-1 alpha-2 code" doc:"The product's first is the default for a static session."`
	City             string               `json:"city,omitempty" nested:"config.city" nullable:"true" pattern:"^[A-Za-z0-9_-]{0,64}$" patternDescription:"at most 64 of A-Z, a-z, 0-9, _ and -" doc:"A city that the product offers in the country."`
	Protocol         session.Protocol     `json:"protocol,omitempty" nested:"config.protocol" nullable:"true" doc:"http is the default."`
	RotationMode     session.RotationMode `json:"rotation_mode,omitempty" nested:"config.rotation.mode" nullable:"true" doc:"on_demand is the default. timed needs rotation_interval_seconds. fixed never rotates by itself."`
	RotationInterval value.Decimal        `json:"rotation_interval_seconds,omitempty" nested:"config.rotation.interval_seconds" nullable:"true" minimum:"10" maximum:"86400" multipleOf:"1" doc:"Seconds between two timed rotations; for mode timed."`

	ProvisioningMode session.ProvisioningMode `json:"provisioning_mode,omitempty" nullable:"true" doc:"existing attaches to the newest live session of the product. purchase is the default."`
	MaxCost          value.Decimal            `json:"max_cost,omitempty" exclusiveMinimum:"0" doc:"US dollars with at most 6 decimals; a dearer session is refused."`

	Labels     value.Labels `json:"labels,omitempty" doc:"Your own words for the session. Both forms."`
	AllowedIPs []string     `json:"allowed_ips,omitempty" maxItems:"32" doc:"Addresses and networks (CIDR) that clients may connect from; empty is anywhere. Both forms."`

	AutoTopUp *autoTopUpBody `json:"auto_top_up,omitempty" doc:"What a dynamic session buys by itself."`

	Require *sessionview.Require `json:"require,omitempty" doc:"What exits must be; {}: anything. It stays with the session."`

	Policy *policyBody `json:"policy,omitempty" doc:"What the session may reach, as in PUT /sessions/{session_id}/policy. Both forms."`
}

// createConfig is the config of the nested form.
type createConfig struct {
	_                struct{}                 `json:"-" additionalProperties:"true"`
	ProductNo        string                   `json:"product_no" maxLength:"64" doc:"A product of GET /products."`
	TrafficGB        value.Decimal            `json:"traffic_gb,omitempty" exclusiveMinimum:"0" doc:"Dynamic. At most 3 decimals, within the product's bounds; 1 is the default."`
	Quantity         value.Decimal            `json:"quantity,omitempty" exclusiveMinimum:"0" doc:"Static: IPs, 1 to 100, required."`
	DurationDays     value.Decimal            `json:"duration_days,omitempty" minimum:"1" maximum:"3650" multipleOf:"1" doc:"Static: one that the product lists, required."`
	Country          string                   `json:"country,omitempty" nullable:"true" pattern:"^([A-Za-z]{2})?$" patternDescription:"an ISO 3166-1 alpha-2 code" doc:"One that the product offers, in any case. Required for a static session."`
	City             string                   `json:"city,omitempty" nullable:"true" pattern:"^[A-Za-z0-9_-]{0,64}$" patternDescription:"at most 64 of A-Z, a-z, 0-9, _ and -" doc:"A city that the product offers in the country."`
	Protocol         session.Protocol         `json:"protocol,omitempty" nullable:"true" doc:"Both work on the same port; the choice shapes full_url. http is the default."`
	Rotation         *createRotation          `json:"rotation,omitempty" doc:"When the exit changes."`
	ProvisioningMode session.ProvisioningMode `json:"provisioning_mode,omitempty" nullable:"true" doc:"existing attaches to the newest live session of the product. purchase is the default."`
	MaxCost          value.Decimal            `json:"max_cost,omitempty" exclusiveMinimum:"0" doc:"US dollars with at most 6 decimals; a dearer session is refused."`
}

type createRotation struct {
	_               struct{}             `json:"-" additionalProperties:"true"`
	Mode            session.RotationMode `json:"mode,omitempty" nullable:"true" doc:"on_demand is the default. timed needs interval_seconds. fixed never rotates by itself."`
	IntervalSeconds value.Decimal        `json:"interval_seconds,omitempty" nullable:"true" minimum:"10" maximum:"86400" multipleOf:"1" doc:"Seconds between two timed rotations; for mode timed."`
}

// flatField is a field of the flat form alone: its name there, its path in the nested form, and where it is in a body.
type flatField struct {
	name, nested string
	index        int
}

// flatForm lists the fields of the flat form that the nested one has elsewhere; others are at the top level of it too.
var flatForm, others = func() (flat []flatField, others []string) {
	t := reflect.TypeFor[createBody]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if nested, ok := t.Field(i).Tag.Lookup("nested"); ok {
			flat = append(flat, flatField{name, nested, i})
		} else if name != "-" {
			others = append(others, name)
		}
	}
	return flat, others
}()

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
		Type:             b.Type,
		ProductNo:        c.ProductNo,
		Bytes:            c.TrafficGB.Bytes(),
		Quantity:         c.Quantity.Integer(),
		Days:             c.DurationDays.Integer(),
		Location:         session.Location{Country: c.Country, City: c.City},
		Protocol:         c.Protocol,
		ProvisioningMode: cmp.Or(b.ProvisioningMode, c.ProvisioningMode),
		MaxCost:          cmp.Or(b.MaxCost, c.MaxCost).Money(),
		Labels:           session.Labels(b.Labels),
		AllowedIPs:       b.AllowedIPs,
		AutoTopUp:        b.AutoTopUp.setting(),
	}
	if c.Rotation != nil {
		r.RotationMode, r.RotationInterval = c.Rotation.Mode, c.Rotation.IntervalSeconds.Seconds()
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

// flatFields returns the fields of the flat form alone that the body has.
func (b createBody) flatFields() (given []flatField) {
	body := reflect.ValueOf(b)
	for _, f := range flatForm {
		if text := body.Field(f.index).String(); text != "" && text != "null" {
			given = append(given, f)
		}
	}
	return given
}

// flat returns a body of the flat form, whose quantity is the traffic of a
// dynamic session without traffic_gb.
func (b createBody) flat() session.CreateRequest {
	r := session.CreateRequest{
		Type:             cmp.Or(b.SessionType, b.Type),
		ProductNo:        b.ProductNo,
		Bytes:            b.TrafficGB.Bytes(),
		Quantity:         b.Quantity.Integer(),
		Days:             b.Duration.Integer(),
		Location:         session.Location{Country: b.CountryCode, City: b.City},
		Protocol:         b.Protocol,
		RotationMode:     b.RotationMode,
		RotationInterval: b.RotationInterval.Seconds(),
		ProvisioningMode: b.ProvisioningMode,
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
		for _, f := range flatForm {
			if strings.TrimPrefix(f.nested, "config.") == field {
				return f.name
			}
		}
		return field
	}
	if name, _, _ := strings.Cut(field, "."); slices.Contains(others, name) {
		return field
	}
	return "config." + field
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
	for _, name := range others {
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
