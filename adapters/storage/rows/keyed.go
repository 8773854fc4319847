package rows

// keyed is a map that keeps the order of its keys. A unit has a row or two of most tables, for which a list takes
// less than a map does.
type keyed[K comparable, V any] struct {
	list []pair[K, V]
	at   map[K]int // in the list, nil while that is short
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

// short is how long a list is at most that is searched.
const short = 8

// get returns the value of a key, nil if there is none. It is valid until the next put.
func (m *keyed[K, V]) get(k K) *V {
	if m.at != nil {
		if i, ok := m.at[k]; ok {
			return &m.list[i].value
		}
		return nil
	}
	for i := range m.list {
		if m.list[i].key == k {
			return &m.list[i].value
		}
	}
	return nil
}

func (m *keyed[K, V]) put(k K, v V) {
	if old := m.get(k); old != nil {
		*old = v
		return
	}
	m.list = append(m.list, pair[K, V]{k, v})
	switch {
	case m.at != nil:
		m.at[k] = len(m.list) - 1
	case len(m.list) > short:
		m.at = make(map[K]int, 2*len(m.list))
		for i := range m.list {
			m.at[m.list[i].key] = i
		}
	}
}

func (m *keyed[K, V]) clear() {
	clear(m.list)
	m.list, m.at = m.list[:0], nil
}
