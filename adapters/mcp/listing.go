package mcp

// Listing is a tool as the documentation shows it.
type Listing struct {
	Name, Scope, Description string
	Fields                   []string // of its arguments and of its structured answer
}

// Listings returns the table of tools.
func Listings() []Listing {
	list := make([]Listing, len(tools))
	for i, t := range tools {
		list[i] = Listing{Name: t.name, Scope: t.scope, Description: t.description,
			Fields: append(fieldNames(t.args), fieldNames(t.out)...)}
	}
	return list
}

// fieldNames returns the names of fields, with those of nested ones.
func fieldNames(list []field) (names []string) {
	for _, f := range list {
		names = append(append(names, f.name), fieldNames(f.items)...)
	}
	return names
}
