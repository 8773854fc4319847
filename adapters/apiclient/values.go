package apiclient

import (
	"encoding/json"
	"iter"
	"strconv"
	"strings"
)

// Optional is a field of a change: left out unless it is Set or Null.
type Optional[T any] struct {
	given bool
	value *T
}

// Set returns a field with a value.
func Set[T any](v T) Optional[T] { return Optional[T]{true, &v} }

// Null returns a field that is null, which clears what it names.
func Null[T any]() Optional[T] { return Optional[T]{given: true} }

// IsZero reports whether the field is left out.
func (o Optional[T]) IsZero() bool { return !o.given }

// MarshalJSON writes the value, or null.
func (o Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// PolicyEntry is an entry of a list of a policy: a text, which the service may write as a number.
type PolicyEntry string

// UnmarshalJSON reads a text or a number.
func (p *PolicyEntry) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		*p = PolicyEntry(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(p))
}

// byPage is before the number of a page, in place of a cursor, of a list that has no cursors.
const byPage = "page "

// next returns the cursor of what follows the page of a cursor, empty after the last one.
func (p *Pagination) next(cursor string) string {
	switch {
	case p == nil:
	case p.NextCursor != nil:
		return *p.NextCursor
	case p.Page < p.TotalPages && (cursor == "" || strings.HasPrefix(cursor, byPage)):
		return byPage + strconv.Itoa(p.Page+1)
	}
	return ""
}

// position returns the parameters page and cursor of a cursor that next returned.
func position(cursor string) (page int, of string) {
	if number, ok := strings.CutPrefix(cursor, byPage); ok {
		page, _ = strconv.Atoi(number)
		return page, ""
	}
	return 0, cursor
}

// each returns the items of all pages. It stops after an error.
func each[T any](page func(cursor string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor, more := "", true; more; {
			items, next, err := page(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			cursor, more = next, next != ""
		}
	}
}

// mostItems is how many items a page has at most.
const mostItems = 100
