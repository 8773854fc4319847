package openapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/httpapi/value"
)

// object is an object of the document.
type object = map[string]any

// Compact writes the document for readers and generators of clients: what it has more than once
// becomes a component, enumerations have names, and each form of a create call has a schema of its own. The operations
// keep the schemas that they validate with.
func Compact(text []byte) ([]byte, error) {
	var doc object
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	components := doc["components"].(object)
	schemas := components["schemas"].(object)
	splitCreate(schemas)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		nameEnums(schemas, schemas[name])
	}
	nameEnums(schemas, doc["paths"])
	var parameters, headers, examples, responses []site
	for operation := range operationsOf(doc) {
		list, _ := operation["parameters"].([]any)
		for i, p := range list {
			in, name := p.(object)["in"].(string), p.(object)["name"].(string)
			delete(p.(object), "explode") // no parameter is a list, which alone it matters to
			if schema := objectIn(p.(object), "schema"); schema["description"] == p.(object)["description"] {
				delete(schema, "description")
			}
			parameters = append(parameters, site{p, func(ref any) { list[i] = ref },
				camel(in + "_" + strings.ReplaceAll(name, "-", "_"))})
		}
		for status, r := range objectIn(operation, "responses") {
			for _, h := range sitesOf(objectIn(r.(object), "headers")) {
				h.name = strings.ReplaceAll(strings.TrimPrefix(h.name, "X-"), "RateLimit-", "")
				h.name = cmp.Or(headerNames[h.name], h.name)
				headers = append(headers, h)
			}
			withoutType(objectIn(r.(object), "content", JSONType, "schema"))
			shown := objectIn(r.(object), "content", JSONType, "examples")
			if status < "400" {
				examples = append(examples, sameReplies(shown)...)
				continue
			}
			examples = append(examples, sitesOf(shown)...)
			name := strings.Join(value.Each(slices.Sorted(maps.Keys(shown)), camel), "Or")
			name = cmp.Or(responseNames[name], name)
			if status == "429" && objectIn(r.(object), "headers")["X-RateLimit-Limit"] == nil {
				name = "Open" + name // of a call without a credential, which has no rate
			}
			responses = append(responses, site{r, func(ref any) { objectIn(operation, "responses")[status] = ref }, name})
		}
	}
	share(components, "parameters", parameters, 2)
	share(components, "headers", headers, 2)
	share(components, "examples", examples, 2)
	share(components, "responses", responses, 1)
	return json.Marshal(doc)
}

// operationsOf iterates over the operations by path.
func operationsOf(doc object) iter.Seq[object] {
	return func(yield func(object) bool) {
		paths := doc["paths"].(object)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			for _, operation := range paths[path].(object) {
				if !yield(operation.(object)) {
					return
				}
			}
		}
	}
}

// objectIn returns the object at a path of keys, or nil.
func objectIn(at object, keys ...string) object {
	for _, key := range keys {
		at, _ = at[key].(object)
	}
	return at
}

// camel returns a name with underscores in camel case.
func camel(code string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(code, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + strings.ToLower(word[1:]))
	}
	return b.String()
}

// site is a place whose value may become a reference to a component.
type site struct {
	value   any
	replace func(ref any)
	name    string // of the component
}

// sitesOf returns the values of an object, under their keys.
func sitesOf(o object) (sites []site) {
	for key, value := range o {
		sites = append(sites, site{value, func(ref any) { o[key] = ref }, key})
	}
	return sites
}

// sameReplies returns the examples of successes under names that equal ones share.
func sameReplies(shown object) []site {
	sites := sitesOf(shown)
	for i := range sites {
		text, _ := json.Marshal(sites[i].value) // it was read from JSON
		sum := sha256.Sum256(text)
		sites[i].name = "Reply" + hex.EncodeToString(sum[:4])
	}
	return sites
}

// share replaces what occurs at least so often by references to components. Different values of one
// name are numbered, the most frequent first.
func share(components object, kind string, sites []site, least int) {
	counts := map[string]map[string]int{} // by name and value
	texts := make([]string, len(sites))
	for i, s := range sites {
		text, _ := json.Marshal(s.value) // it was read from JSON
		texts[i] = string(text)
		if counts[s.name] == nil {
			counts[s.name] = map[string]int{}
		}
		counts[s.name][texts[i]]++
	}
	shared := object{}
	for i, s := range sites {
		values := counts[s.name]
		if values[texts[i]] < least {
			continue
		}
		before := 0
		for text, n := range values {
			// Of two that are as frequent the text decides, so that the document is always the same.
			if n > values[texts[i]] || n == values[texts[i]] && text < texts[i] {
				before++
			}
		}
		name := s.name
		if before > 0 {
			name += strconv.Itoa(before + 1)
		}
		shared[name] = s.value
		s.replace(object{"$ref": "#/components/" + kind + "/" + name})
	}
	components[kind] = shared
}

// nameEnums replaces the enumerations below a node by references to schemas of their own. A
// nullable one becomes a choice, because null is none of its values.
func nameEnums(schemas object, node any) {
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			nameEnums(schemas, n)
		}
	case object:
		values, _ := node["enum"].([]any)
		if name := enumNames[joined(values)]; name != "" {
			schemas[name] = object{"type": "string", "enum": values}
			ref := object{"$ref": "#/components/schemas/" + name}
			if _, nullable := node["type"].([]any); nullable {
				node["anyOf"] = []any{ref, object{"type": "null"}}
			} else {
				maps.Copy(node, ref)
			}
			delete(node, "enum")
			delete(node, "type")
			return
		}
		for key, n := range node {
			if key != "example" && key != "examples" {
				nameEnums(schemas, n)
			}
		}
	}
}

// withoutType removes the type of the data of a success, which the envelope has.
func withoutType(schema object) {
	if all, _ := schema["allOf"].([]any); len(all) > 1 {
		delete(all[1].(object), "type")
	}
}

// splitCreate makes one schema of each form of a create call.
func splitCreate(schemas object) {
	both := schemas["CreateRequest"].(object)
	fields := both["properties"].(object)
	nested, flat := object{}, maps.Clone(fields)
	for _, name := range []string{"type", "config", "max_cost", "provisioning_mode", "labels", "allowed_ips", "policy"} {
		nested[name] = fields[name]
	}
	delete(flat, "type")
	delete(flat, "config")
	for _, form := range []struct {
		fields object
		name   string
	}{{nested, "type"}, {flat, "session_type"}, {flat, "product_no"}} {
		required := maps.Clone(form.fields[form.name].(object))
		required["type"] = "string" // and not null, which counts as absent
		form.fields[form.name] = required
	}
	schemas["CreateNested"] = object{"type": "object", "properties": nested, "required": []any{"type", "config"},
		"additionalProperties": true, "description": "The nested form."}
	schemas["CreateFlat"] = object{"type": "object", "properties": flat, "required": []any{"session_type", "product_no"},
		"additionalProperties": true, "description": "The flat form."}
	schemas["CreateRequest"] = object{"description": "Either form.", "oneOf": []any{
		object{"$ref": "#/components/schemas/CreateNested"}, object{"$ref": "#/components/schemas/CreateFlat"}}}
}
