package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// field is an argument of a tool.
type field struct {
	name     string
	kind     string // string, number, integer, boolean or array
	doc      string
	enum     []string
	required bool
	items    []field // of the objects of an array
	most     int     // items of an array, or characters of a string; 0: the API checks
	key      bool    // an Idempotency-Key
	segment  bool    // becomes a part of a path
	orNumber bool    // a whole number is taken as its text
}

// keyText is what an Idempotency-Key is on either transport: HTTP cuts spaces off at its ends.
var keyText = regexp.MustCompile(`^[!-~]([ -~]{0,253}[!-~])?$`)

// segmentText is what ids and names of workers have: a slash or a dot would lead to another operation.
var segmentText = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

var wholeNumber = regexp.MustCompile(`^[0-9]{1,9}$`)

// schema returns the JSON Schema of an object with fields.
func schema(fields []field) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		p := map[string]any{"type": f.kind}
		if f.doc != "" {
			p["description"] = f.doc
		}
		if f.enum != nil {
			p["enum"] = f.enum
		}
		if f.items != nil {
			p["items"], p["minItems"], p["maxItems"] = schema(f.items), 1, f.most
		}
		properties[f.name] = p
		if f.required {
			required = append(required, f.name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// invalid refuses an argument. The text names no value of the caller's.
func invalid(field, format string, args ...any) *refusal {
	issue := fmt.Sprintf(format, args...)
	return &refusal{Code: "INVALID_REQUEST", Message: field + " " + issue,
		Details: map[string]any{"fields": []any{map[string]any{"field": field, "issue": issue}}}}
}

// argumentOf has the names of the tools for fields and parameters of the API that have others.
var argumentOf = strings.NewReplacer("config.rotation.interval_seconds", "rotation_seconds",
	"config.rotation.mode", "rotation", "config.rotation", "rotation", "config.", "",
	"country_code", "country", "target_region", "country")

// inArguments returns a refusal of the API about what was sent in the words of the tool's caller.
func inArguments(err error) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok || r.Code != "INVALID_REQUEST" {
		return err
	}
	c := *r
	c.Message = argumentOf.Replace(r.Message)
	if text, err := json.Marshal(r.Details); err == nil {
		var details map[string]any
		if decode([]byte(argumentOf.Replace(string(text))), &details) == nil {
			c.Details = details
		}
	}
	return &c
}

// check checks arguments by their fields: types, required ones, unknown names. The bounds of values
// are checked by the API. An argument that is null counts as absent.
func check(raw json.RawMessage, fields []field) (map[string]json.RawMessage, error) {
	args := map[string]json.RawMessage{}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, invalid("arguments", "must be a JSON object")
		}
	}
	return args, checkObject(args, fields, "")
}

func checkObject(args map[string]json.RawMessage, fields []field, path string) error {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
		value, given := args[f.name]
		if given && string(bytes.TrimSpace(value)) == "null" {
			delete(args, f.name)
			given = false
		}
		if !given {
			if f.required {
				return invalid(path+f.name, "is required")
			}
			continue
		}
		if f.orNumber && wholeNumber.Match(bytes.TrimSpace(value)) {
			value = []byte(strconv.Quote(string(bytes.TrimSpace(value))))
			args[f.name] = value
		}
		if err := f.check(value, path); err != nil {
			return err
		}
	}
	for name := range args {
		if !slices.Contains(names, name) {
			return invalid("an argument", "is unknown; the arguments are %s", strings.Join(names, ", "))
		}
	}
	return nil
}

func (f field) check(value json.RawMessage, path string) error {
	var v any
	if err := decode(value, &v); err != nil {
		return invalid(path+f.name, "is not valid JSON")
	}
	fits, n := false, json.Number("")
	switch f.kind {
	case "string":
		_, fits = v.(string)
	case "boolean":
		_, fits = v.(bool)
	case "number":
		_, fits = v.(json.Number)
	case "integer":
		n, fits = v.(json.Number)
		fits = fits && !strings.ContainsAny(n.String(), ".eE")
	case "array":
		return f.checkItems(value, path)
	}
	if !fits {
		return invalid(path+f.name, "must be of type %s", f.kind)
	}
	if text, _ := v.(string); f.enum != nil && !slices.Contains(f.enum, text) {
		return invalid(path+f.name, "must be one of %s", strings.Join(f.enum, ", "))
	} else if f.most > 0 && len([]rune(text)) > f.most {
		return invalid(path+f.name, "must have at most %d characters", f.most)
	} else if f.segment && text != "" && !segmentText.MatchString(text) {
		return invalid(path+f.name, "must have letters, digits, _ and - alone, at most 64")
	} else if f.key && !keyText.MatchString(text) {
		return invalid(path+f.name, "must be 1 to 255 printable ASCII characters without a space at either end")
	}
	return nil
}

func (f field) checkItems(value json.RawMessage, path string) error {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return invalid(path+f.name, "must be an array of objects")
	}
	if len(list) == 0 || len(list) > f.most {
		return invalid(path+f.name, "must have 1 to %d items", f.most)
	}
	for i, one := range list {
		if one == nil {
			return invalid(path+f.name, "must be an array of objects")
		}
		if err := checkObject(one, f.items, fmt.Sprintf("%s%s[%d].", path, f.name, i)); err != nil {
			return err
		}
	}
	return nil
}

// value returns what a pointer points to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
