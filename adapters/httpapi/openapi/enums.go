package openapi

import (
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/accounts"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/connect"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
)

// TypeFilter is a session.Type, or all.
type TypeFilter string

// ClientName is the name of a connect.Client.
type ClientName string

// enumeration is a type of texts whose values the document lists.
type enumeration struct {
	name   string // of the schema; empty if each use has the values of its own
	values []any
	of     reflect.Type
	schema reflect.Type // a huma.SchemaProvider
}

// enumerations lists the types whose values are those of a list elsewhere. A field of such a type
// needs no tag.
var enumerations = []enumeration{
	enumOf("AccountState", account.Statuses),
	enumOf("Permission", account.Scopes),
	enumOf("KeyReach", account.Reaches),
	enumOf("Tier", account.Tiers),
	enumOf("AuthMode", accounts.AuthModes),
	enumOf("TransactionType", billing.Types),
	enumOf("UseCase", catalog.UseCases),
	enumOf("", value.Each(connect.Names(), func(name string) ClientName { return ClientName(name) })),
	enumOf("EventType", health.Types()),
	enumOf("HealthAdvice", health.Recommendations),
	enumOf("HealthReason", health.Reasons),
	enumOf("RiskLevel", health.Risks),
	enumOf("NetworkType", append(slices.Clone(exit.Networks), "unknown")),
	enumOf("RotateReason", health.RotationReasons),
	enumOf("PolicyMode", policy.Modes),
	enumOf("RechargeState", recharge.Statuses),
	enumOf("ReplacementGround", replacement.Grounds),
	enumOf("ReplacementReason", procurement.Faults),
	enumOf("ReplacementState", replacement.Statuses),
	enumOf("Protocol", session.Protocols),
	enumOf("ProvisioningMode", session.ProvisioningModes),
	enumOf("RotationMode", session.RotationModes),
	enumOf("SessionState", session.Statuses),
	enumOf("SessionType", session.Types),
	enumOf("SessionTypeFilter",
		append(value.Each(session.Types, func(t session.Type) TypeFilter { return TypeFilter(t) }), "all")),
	enumOf("DeliveryState", webhook.Statuses),
	enumOf("WebhookState", webhook.States),
	enumOf("WebhookType", webhook.Types),
	enumOf("WorkerState", worker.Statuses),
}

// enumNames returns the names of the document's enumerations, by their values: those of enumerations, and those that
// fields of its objects list in a tag, with the tag enumName beside it.
func enumNames(schemas huma.Registry) map[string]string {
	names := map[string]string{}
	for _, e := range enumerations {
		names[joined(e.values)] = e.name
	}
	for f := range fieldsOf(schemas) {
		if name := f.Tag.Get("enumName"); name != "" {
			names[strings.ReplaceAll(f.Tag.Get("enum"), ",", " ")] = name
		}
	}
	return names
}

func enumOf[T ~string](name string, values []T) enumeration {
	return enumeration{name, OneOf(values...), reflect.TypeFor[T](), reflect.TypeFor[enumSchema[T]]()}
}

// enumSchema provides the schema of T, one of enumerations.
type enumSchema[T ~string] struct{}

// Schema returns a text of T's values.
func (enumSchema[T]) Schema(huma.Registry) *huma.Schema {
	for _, e := range enumerations {
		if e.of == reflect.TypeFor[T]() {
			return &huma.Schema{Type: huma.TypeString, Enum: e.values}
		}
	}
	return nil
}

// registerEnums gives the types of enumerations the schemas that list their values.
func registerEnums(r huma.Registry) {
	for _, e := range enumerations {
		r.RegisterTypeAlias(e.of, e.schema)
	}
}

// OneOf returns the values of an enumeration for the document.
func OneOf[T ~string](values ...T) []any {
	return value.Each(values, func(v T) any { return string(v) })
}

// joined returns the texts among values with spaces between them.
func joined(values []any) string {
	return strings.Join(value.Each(values, func(v any) string {
		text, _ := v.(string)
		return text
	}), " ")
}
