package strictjson

// Names are the fields that an object may have, and what becomes of other keys.
type Names struct {
	Fields []Name
	// Refuse returns the issue with a key that is none of Fields, or "" to ignore it. Nil ignores all.
	Refuse func(key string) string
}

// Name is a field of an object.
type Name struct {
	Name   string
	Within *Names // of its object, or of the objects in its array; nil: any
}

// lookUp returns the names within a field, and for a key that is no field the issue with it, or "".
func (n *Names) lookUp(key []byte) (within *Names, issue string) {
	if n == nil {
		return nil, ""
	}
	for i := range n.Fields {
		if n.Fields[i].Name == string(key) {
			return n.Fields[i].Within, ""
		}
	}
	if n.Refuse == nil {
		return nil, ""
	}
	return nil, n.Refuse(string(key))
}
