package endpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/domain"
)

// MaxFields bounds how many issues one answer lists.
const MaxFields = 50

// invalidInput returns the refusal of input that huma found invalid. Each issue is
// worded by the first keyword of the schema that the value violates. The values
// are left out.
func (a *API) invalidInput(o *Operation, details []*huma.ErrorDetail) *domain.Error {
	var issues []domain.FieldIssue
	for _, d := range details {
		for _, issue := range a.issuesOf(o, d) {
			if len(issues) < MaxFields && !slices.Contains(issues, issue) {
				issues = append(issues, issue)
			}
		}
	}
	if issues == nil {
		return domain.ErrInvalid
	}
	return domain.InvalidFields(issues...)
}

// issuesOf returns the issues at one location, under the path of the
// request: body.config.quantity is config.quantity, query.page is page. It is more
// than one if required fields of an object are missing.
func (a *API) issuesOf(o *Operation, d *huma.ErrorDetail) []domain.FieldIssue {
	_, field, _ := strings.Cut(d.Location, ".")
	schema := a.schemaAt(o, d.Location)
	members, isObject := d.Value.(map[string]any)
	switch {
	case schema == nil, field == "" && !isObject: // encoding/json could not bind the body
		return []domain.FieldIssue{{Field: d.Location, Issue: "does not have the expected types"}}
	case !isObject || schema.Type != huma.TypeObject:
		return []domain.FieldIssue{{Field: field, Issue: a.issueOf(schema, d.Value)}}
	}
	var missing []domain.FieldIssue
	for _, name := range schema.Required {
		if _, given := members[name]; !given {
			missing = append(
				missing,
				domain.FieldIssue{Field: strings.TrimPrefix(field+"."+name, "."), Issue: "is required"},
			)
		}
	}
	return missing
}

// schemaAt returns the schema of a location such as query.page or
// body.events[0].type, or nil if there is none.
func (a *API) schemaAt(o *Operation, location string) *huma.Schema {
	doc := a.huma.OpenAPI()
	h := operationOf(doc.Paths[o.Path], o.Method)
	place, rest, _ := strings.Cut(location, ".")
	if place != "body" {
		i := slices.IndexFunc(h.Parameters, func(p *huma.Param) bool { return p.In == place && p.Name == rest })
		if i < 0 {
			return nil
		}
		return h.Parameters[i].Schema
	}
	resolve := func(at *huma.Schema) *huma.Schema {
		for at != nil && at.Ref != "" {
			at = doc.Components.Schemas.SchemaFromRef(at.Ref)
		}
		return at
	}
	at := resolve(h.RequestBody.Content[openapi.JSONType].Schema)
	for _, part := range strings.FieldsFunc(rest, func(c rune) bool { return c == '.' || c == '[' }) {
		switch {
		case at == nil:
			return nil
		case strings.HasSuffix(part, "]"):
			at = resolve(at.Items)
		default:
			at = resolve(at.Properties[part])
		}
	}
	return at
}

// issueOf returns the first keyword of a schema that a value violates, in words.
func (a *API) issueOf(schema *huma.Schema, v any) string {
	if schema.Enum != nil && !slices.Contains(schema.Enum, v) {
		names := make([]string, len(schema.Enum))
		for i, e := range schema.Enum {
			names[i] = fmt.Sprint(e)
		}
		return "must be one of " + strings.Join(names, ", ")
	}
	switch schema.Type {
	case huma.TypeNumber, huma.TypeInteger:
		return numberIssue(schema, v)
	case huma.TypeString:
		text, ok := v.(string)
		if !ok {
			return "must be a string"
		}
		return a.textIssue(schema, text)
	case huma.TypeArray:
		list, ok := v.([]any)
		switch {
		case !ok:
			return "must be an array"
		case schema.MinItems != nil && len(list) < *schema.MinItems:
			return fmt.Sprintf("must have at least %d items", *schema.MinItems)
		case schema.MaxItems != nil && len(list) > *schema.MaxItems:
			return fmt.Sprintf("must have at most %d items", *schema.MaxItems)
		}
		return "is not valid"
	case huma.TypeBoolean:
		return "must be true or false"
	case huma.TypeObject:
		return "must be an object"
	}
	return "is not valid"
}

func numberIssue(schema *huma.Schema, v any) string {
	kind := map[bool]string{true: "an integer", false: "a number"}[schema.Type == huma.TypeInteger]
	var x float64
	switch v := v.(type) {
	case float64:
		x = v
	case int:
		x = float64(v)
	case int64: // of a parameter
		x = float64(v)
	default:
		return "must be " + kind
	}
	text := func(bound *float64) string { return strconv.FormatFloat(*bound, 'f', -1, 64) }
	switch {
	case schema.Minimum != nil && x < *schema.Minimum:
		return "must be " + kind + " of at least " + text(schema.Minimum)
	case schema.ExclusiveMinimum != nil && x <= *schema.ExclusiveMinimum:
		return "must be " + kind + " above " + text(schema.ExclusiveMinimum)
	case schema.Maximum != nil && x > *schema.Maximum:
		return "must be " + kind + " of at most " + text(schema.Maximum)
	case schema.MultipleOf != nil && *schema.MultipleOf == 1:
		return "must be a whole number"
	}
	return "is not valid"
}

func (a *API) textIssue(schema *huma.Schema, text string) string {
	switch n := utf8.RuneCountInString(text); {
	case schema.MinLength != nil && n < *schema.MinLength:
		return fmt.Sprintf("must have at least %d characters", *schema.MinLength)
	case schema.MaxLength != nil && n > *schema.MaxLength:
		return fmt.Sprintf("must have at most %d characters", *schema.MaxLength)
	case schema.Format == "date-time":
		return "must be a time in RFC 3339"
	case a.patterns[schema.Pattern] != "":
		return "must be " + a.patterns[schema.Pattern]
	case schema.Pattern != "":
		return "must match " + schema.Pattern
	}
	return "is not valid"
}
