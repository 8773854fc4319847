package sessionview

import (
	"net/netip"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain/exit"
)

// ExitFacts is what was measured of an exit. What is not known is null.
type ExitFacts struct {
	IP         string          `json:"ip" doc:"The address that targets see."`
	Version    int             `json:"version" doc:"Of its protocol."`
	MeasuredAt value.Stamp     `json:"measured_at" doc:"When the echo saw it."`
	Declared   value.MaybeText `json:"declared_country" doc:"As sold; null: none."`
	Country    value.MaybeText `json:"country" doc:"As measured; null: not."`
	Agreed     *bool           `json:"agreed" nullable:"true" doc:"Whether sources agree on the country, with each other and with what was sold."`
	Region     value.MaybeText `json:"region" doc:"Its largest subdivision."`
	City       value.MaybeText `json:"city" doc:"In English."`
	Timezone   value.MaybeText `json:"timezone" doc:"Of the IANA database."`
	ASN        value.MaybeInt  `json:"asn" doc:"Its autonomous system."`
	ASName     value.MaybeText `json:"as_name" doc:"Who announces it."`
	Network    exit.Network    `json:"network_type" doc:"Whose network it is in."`
	Listed     *[]string       `json:"listed" nullable:"true" doc:"Block lists that have it."`
	Risk       value.MaybeInt  `json:"risk" doc:"0 to 100; a formula of this service, in its documentation."`
}

// ToExit returns what was measured of an exit as the API shows it.
func ToExit(m exit.Measured) ExitFacts {
	e := ExitFacts{IP: m.IP.String(), Version: m.Version(), MeasuredAt: value.Stamp(m.At),
		Declared: value.MaybeText(m.Declared), Country: value.MaybeText(m.Country), Region: value.MaybeText(m.Region),
		City: value.MaybeText(m.City), Timezone: value.MaybeText(m.Timezone), ASN: value.MaybeInt(m.ASN),
		ASName: value.MaybeText(m.ASName), Network: m.Network, Risk: -1}
	if agreed, known := m.Agreed(); known {
		e.Agreed = &agreed
	}
	if m.Listed != nil {
		e.Listed = &m.Listed
	}
	if m.ASN == 0 {
		e.ASN = -1
	}
	if m.Network == "" {
		e.Network = "unknown"
	}
	if risk, known := m.Risk(); known {
		e.Risk = value.MaybeInt(risk)
	}
	return e
}

// MaybeExit returns what was measured of an exit, nil if nothing was.
func MaybeExit(m *exit.Measured) *ExitFacts {
	if m == nil {
		return nil
	}
	e := ToExit(*m)
	return &e
}

// ExampleExit is an exit that is not where it was sold.
var ExampleExit = ToExit(exit.Measured{IP: netip.MustParseAddr("203.0.113.7"), At: openapi.ExampleTime, Declared: "TH",
	Known: exit.Known{Country: "LT", City: "Vilnius", Timezone: "Europe/Vilnius", ASN: 64500,
		ASName: "Example Net", Network: exit.Hosting, Listed: []string{"example"}}})
