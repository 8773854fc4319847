package webhooks

import (
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/domain/webhook"
)

const (
	schemaPrefix = "#/components/schemas/"
	// anyData is the name of the schema of the data of any event.
	anyData = "EventData"
)

// DocumentData gives the field data of a schema, by its reference, the schema of the data of any event. Each type has a
// schema, which is named for it; one that has equal data refers to the first.
func DocumentData(a *endpoint.API, ref string) {
	schemas := a.OpenAPI().Components.Schemas
	all := schemas.Map()
	if all[anyData] == nil {
		list := &huma.Schema{Description: "One for each type of event, which is named for it: SessionActiveData is that of " +
			"session.active."}
		first := map[string]string{} // by fields
		for _, t := range webhook.Types {
			fields, name := fmt.Sprint(webhook.Fields[t]), dataName(t)
			list.AnyOf = append(list.AnyOf, &huma.Schema{Ref: schemaPrefix + name})
			if same := first[fields]; same != "" {
				all[name] = &huma.Schema{Ref: schemaPrefix + same}
				continue
			}
			first[fields] = name
			all[name] = dataSchema(t)
		}
		all[anyData] = list
	}
	event := schemas.SchemaFromRef(ref)
	event.Properties["data"] = &huma.Schema{Ref: schemaPrefix + anyData, Description: event.Properties["data"].Description}
}

// dataName returns the name of the schema of a type's data: SessionActiveData of session.active.
func dataName(t webhook.Type) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(string(t), func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + "Data"
}

func dataSchema(t webhook.Type) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
	for _, f := range webhook.Fields[t] {
		s.Properties[f.Name] = &huma.Schema{Type: huma.TypeString, Description: f.Doc}
		if !f.Optional {
			s.Required = append(s.Required, f.Name)
		}
	}
	return s
}
