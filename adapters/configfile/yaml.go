package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"agentproxy/domain"
)

// document is the configuration file, parsed but not decoded, so that each value
// has its line, texts keep their digits, and every fault is found. The strict
// decoder of the library is not used: it stops at the first fault (of two unknown
// keys at either), takes the code 007 for 7 and 0.5 days for 0, accepts a second
// document, and its errors quote the lines around, secrets included.
type document struct {
	file      string
	anchors   map[string]ast.Node
	faults    []Fault
	warnings  []Fault
	variables []string // that secrets are read from
}

// parse reads a file into its topmost value.
func parse(file string) (value, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return value{}, fmt.Errorf("AGENTPROXY_CONFIG: %w", err)
	}
	tree, err := parser.ParseBytes(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f := Fault{File: file, Line: 1, Text: "is not valid YAML"}
		if e, ok := errors.AsType[yaml.Error](err); ok {
			f.Line, f.Text = e.GetToken().Position.Line, e.GetMessage()
		}
		return value{}, f
	}
	d := &document{file: file, anchors: map[string]ast.Node{}}
	root := value{doc: d, line: 1}
	for i, doc := range tree.Docs {
		ast.Walk(d, doc)
		if i == 0 {
			root.node = d.resolve(doc.Body)
		} else if doc.Body != nil {
			value{doc: d, line: doc.Body.GetToken().Position.Line}.fault("starts a second YAML document; the file must have one")
		}
	}
	return root, nil
}

// Visit notes the targets of aliases.
func (d *document) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		d.anchors[a.Name.GetToken().Value] = a.Value
	}
	return d
}

// resolve follows an alias. It returns nil for null.
func (d *document) resolve(n ast.Node) ast.Node {
	for range 10 {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			to, ok := d.anchors[x.Value.GetToken().Value]
			if !ok {
				return n // which every type refuses
			}
			n = to
		case *ast.NullNode:
			return nil
		default:
			return n
		}
	}
	return n
}

// value is a part of the file and its place.
type value struct {
	doc  *document
	node ast.Node // nil if the value is absent; line is that of its parent then
	path string
	line int
}

func (v value) fault(format string, args ...any) {
	v.doc.faults = append(v.doc.faults, Fault{v.doc.file, v.line, v.path, fmt.Sprintf(format, args...)})
}

func (v value) warn(text string) {
	v.doc.warnings = append(v.doc.warnings, Fault{v.doc.file, v.line, v.path, text})
}

// faulty reports whether a fault of the value, or of a part of it, was noted.
func (v value) faulty() bool {
	for _, f := range v.doc.faults {
		if rest, ok := strings.CutPrefix(f.Path, v.path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func (v value) given() bool { return v.node != nil }

// child returns a part that is absent.
func (v value) child(name string) value {
	path := name
	if v.path != "" {
		path = v.path + "." + name
	}
	return value{doc: v.doc, path: path, line: v.line}
}

// pair is an entry of a mapping.
type pair struct {
	key string
	value
}

// pairs reads a mapping with any keys. A duplicate key is a fault.
func (v value) pairs() []pair {
	if !v.given() {
		return nil
	}
	m, ok := v.node.(*ast.MappingNode)
	if !ok {
		v.fault("must be a mapping, such as name: value")
		return nil
	}
	var list []pair
	seen := map[string]bool{}
	for _, e := range m.Values {
		key := e.Key.GetToken().Value
		c := v.child(key)
		c.node, c.line = v.doc.resolve(e.Value), e.Key.GetToken().Position.Line
		if seen[key] {
			c.fault("duplicate key")
			continue
		}
		seen[key] = true
		list = append(list, pair{key, c})
	}
	return list
}

// fields holds the entries of a mapping by name.
type fields struct {
	of   value
	keys []key
	have map[string]value
}

// fields reads a mapping with the given keys; any other key is a fault.
func (v value) fields(keys []key) fields {
	f := fields{v, keys, map[string]value{}}
	known := map[string]bool{}
	for _, k := range keys {
		known[k.name] = true
	}
	for _, p := range v.pairs() {
		if f.have[p.key] = p.value; !known[p.key] {
			p.fault("unknown key")
		}
	}
	return f
}

// get returns an entry, absent or not.
func (f fields) get(name string) value {
	if v, ok := f.have[name]; ok {
		return v
	}
	return f.of.child(name)
}

// need returns an entry that is required.
func (f fields) need(name string) value {
	v := f.get(name)
	if _, ok := f.of.node.(*ast.MappingNode); ok && !v.given() {
		i := slices.IndexFunc(f.keys, func(k key) bool { return k.name == name })
		v.fault("is missing: %s", f.keys[i].meaning)
	}
	return v
}

// items reads a list.
func (v value) items() []value {
	if !v.given() {
		return nil
	}
	s, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.fault("must be a list")
		return nil
	}
	list := make([]value, len(s.Values))
	for i, n := range s.Values {
		list[i] = value{doc: v.doc, node: v.doc.resolve(n), path: fmt.Sprintf("%s[%d]", v.path, i),
			line: n.GetToken().Position.Line}
	}
	return list
}

// text returns a text, a number or a truth value as it is written, or "" if it is
// absent.
func (v value) text() string {
	text, _ := v.scalar()
	return text
}

// scalar returns text, and whether there is one.
func (v value) scalar() (string, bool) {
	switch n := v.node.(type) {
	case nil:
		return "", false
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	v.fault("must be a text or a number")
	return "", false
}

// boolean reads true or false.
func (v value) boolean(otherwise bool) bool {
	if !v.given() {
		return otherwise
	}
	if b, ok := v.node.(*ast.BoolNode); ok {
		return b.Value
	}
	v.fault("must be true or false")
	return otherwise
}

// integer reads an integer of [lo, hi].
func (v value) integer(lo, hi, otherwise int) int {
	text, ok := v.scalar()
	if !ok {
		return otherwise
	}
	n, err := domain.ParseDecimal(text, 0)
	if err != nil || n < int64(lo) || n > int64(hi) {
		v.fault("must be a whole number from %d to %d", lo, hi)
		return otherwise
	}
	return int(n)
}

// money reads an amount above 0. It returns 0 if that is absent or has a fault.
func (v value) money() domain.Money {
	text, ok := v.scalar()
	if !ok {
		return 0
	}
	m, err := domain.ParseMoney(text)
	if err != nil || m <= 0 {
		v.fault("must be US dollars above 0 with at most 6 decimals")
		return 0
	}
	return m
}
