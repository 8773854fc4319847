package strictjson

import "agentproxy/domain/spelling"

// Names are the fields that an object may have. Nil means any.
type Names []Name

// Name is a field of an object.
type Name struct {
	Name   string
	Within Names // of its object, or of the objects in its array
}

// find returns the names within a field. Of a key that is not a field it returns the field
// that the key is a near miss of, or "".
func (n Names) find(key []byte) (within Names, meant string) {
	for i := range n {
		if n[i].Name == string(key) {
			return n[i].Within, ""
		}
	}
	for i := range n {
		if spelling.NearMiss(key, n[i].Name) {
			return nil, n[i].Name
		}
	}
	return nil, ""
}
