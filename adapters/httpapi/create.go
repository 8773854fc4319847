package httpapi

import (
	"cmp"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

const createDoc = `Takes either of two forms. Nested: type and config. Flat: session_type and the fields of the
session at the top level. A body with config is nested. max_cost and provisioning_mode count in both places. Rules that
depend on the product stand in GET /products.`

// createBody is the body of a create call in both of its forms.
type createBody struct {
	_      struct{}      `json:"-" additionalProperties:"true"`
	Type   string        `json:"type,omitempty" nullable:"true" enum:"dynamic,static" doc:"Required in the nested form."`
	Config *createConfig `json:"config,omitempty" doc:"Makes the body nested."`

	SessionType      string  `json:"session_type,omitempty" nullable:"true" enum:"dynamic,static" doc:"Required in the flat form."`
	ProductNo        string  `json:"product_no,omitempty" nullable:"true" maxLength:"64" doc:"Flat form, like the fields that follow."`
	Quantity         decimal `json:"quantity,omitempty" exclusiveMinimum:"0" maximum:"1000000" doc:"Static: IPs, 1 to 100. Dynamic without traffic_gb: GB."`
	TrafficGB        decimal `json:"traffic_gb,omitempty" exclusiveMinimum:"0" maximum:"1000000" doc:"At most 3 decimals."`
	Duration         decimal `json:"duration,omitempty" minimum:"1" maximum:"3650" multipleOf:"1" doc:"Days. The product's shortest is the default."`
	CountryCode      string  `json:"country_code,omitempty" nullable:"true" pattern:"^([A-Za-z]{2})?$" patternDescription:"an ISO 3166-1 alpha-2 code" doc:"The product's first is the default for a static session."`
	City             string  `json:"city,omitempty" nullable:"true" pattern:"^[A-Za-z0-9_-]{0,64}$" patternDescription:"at most 64 of A-Z, a-z, 0-9, _ and -"`
	Protocol         string  `json:"protocol,omitempty" nullable:"true" enum:"http,socks5" doc:"http is the default."`
	RotationMode     string  `json:"rotation_mode,omitempty" nullable:"true" enum:"on_demand,timed,fixed"`
	RotationInterval decimal `json:"rotation_interval_seconds,omitempty" nullable:"true" minimum:"10" maximum:"86400" multipleOf:"1"`

	ProvisioningMode string  `json:"provisioning_mode,omitempty" nullable:"true" enum:"purchase,existing" doc:"existing attaches to the newest live session of the product. purchase is the default."`
	MaxCost          decimal `json:"max_cost,omitempty" exclusiveMinimum:"0" doc:"US dollars with at most 6 decimals; a dearer session is refused."`
}

// createConfig is the config of the nested form.
type createConfig struct {
	_                struct{}        `json:"-" additionalProperties:"true"`
	ProductNo        string          `json:"product_no" maxLength:"64" doc:"A product of GET /products."`
	TrafficGB        decimal         `json:"traffic_gb,omitempty" exclusiveMinimum:"0" maximum:"1000000" doc:"Dynamic. At most 3 decimals, within the product's bounds; 1 is the default."`
	Quantity         decimal         `json:"quantity,omitempty" exclusiveMinimum:"0" maximum:"1000000" doc:"Static: IPs, 1 to 100, required."`
	DurationDays     decimal         `json:"duration_days,omitempty" minimum:"1" maximum:"3650" multipleOf:"1" doc:"Static: one that the product lists, required."`
	Country          string          `json:"country,omitempty" nullable:"true" pattern:"^([A-Za-z]{2})?$" patternDescription:"an ISO 3166-1 alpha-2 code" doc:"One that the product offers, in any case. Required for a static session."`
	City             string          `json:"city,omitempty" nullable:"true" pattern:"^[A-Za-z0-9_-]{0,64}$" patternDescription:"at most 64 of A-Z, a-z, 0-9, _ and -"`
	Protocol         string          `json:"protocol,omitempty" nullable:"true" enum:"http,socks5" doc:"Both work on the same port; the choice shapes full_url. http is the default."`
	Rotation         *createRotation `json:"rotation,omitempty"`
	ProvisioningMode string          `json:"provisioning_mode,omitempty" nullable:"true" enum:"purchase,existing"`
	MaxCost          decimal         `json:"max_cost,omitempty" exclusiveMinimum:"0"`
}

type createRotation struct {
	_               struct{} `json:"-" additionalProperties:"true"`
	Mode            string   `json:"mode,omitempty" nullable:"true" enum:"on_demand,timed,fixed" doc:"on_demand is the default. timed needs interval_seconds. fixed never rotates by itself."`
	IntervalSeconds decimal  `json:"interval_seconds,omitempty" nullable:"true" minimum:"10" maximum:"86400" multipleOf:"1"`
}

// form is the body as the domain reads it, whichever form it has.
func (b createBody) form() (session.Form, error) {
	if b.Config == nil {
		return session.Form{Type: cmp.Or(b.SessionType, b.Type), ProductNo: b.ProductNo, TrafficGB: string(b.TrafficGB),
			Quantity: string(b.Quantity), Days: string(b.Duration), Country: b.CountryCode, City: b.City,
			Protocol: b.Protocol, RotationMode: b.RotationMode, RotationInterval: b.RotationInterval.orNone(),
			ProvisioningMode: b.ProvisioningMode, MaxCost: string(b.MaxCost)}, nil
	}
	c := b.Config
	f := session.Form{Nested: true, Type: b.Type, ProductNo: c.ProductNo, TrafficGB: string(c.TrafficGB),
		Quantity: string(c.Quantity), Days: string(c.DurationDays), Country: c.Country, City: c.City, Protocol: c.Protocol,
		ProvisioningMode: cmp.Or(b.ProvisioningMode, c.ProvisioningMode), MaxCost: cmp.Or(string(b.MaxCost), string(c.MaxCost))}
	if c.Rotation != nil {
		f.RotationMode, f.RotationInterval = c.Rotation.Mode, c.Rotation.IntervalSeconds.orNone()
	}
	switch {
	case c.MaxCost != "" && f.MaxCost != string(c.MaxCost):
		return f, domain.InvalidField("config.max_cost", "differs from max_cost at the top level; send one of them")
	case c.ProvisioningMode != "" && f.ProvisioningMode != c.ProvisioningMode:
		return f, domain.InvalidField("config.provisioning_mode", "differs from provisioning_mode at the top level; send one of them")
	}
	return f, nil
}
