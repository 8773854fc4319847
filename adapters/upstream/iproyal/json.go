package iproyal

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
)

// page is one page of a list.
type page[T any] struct {
	Items []T
	Last  int // number of the last page; 0 if the answer has none
}

// last reports whether the page with a number is the last one.
func (p page[T]) last(number int) bool {
	return len(p.Items) == 0 || p.Last > 0 && number >= p.Last || p.Last == 0 && len(p.Items) < pageSize
}

// UnmarshalJSON reads a bare array, or an object with data and meta.
func (p *page[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, &p.Items)
	}
	var outer struct {
		Data *[]T `json:"data"`
		Meta struct {
			Last int `json:"last_page"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(b, &outer); err != nil {
		return err
	}
	if outer.Data == nil {
		return rest.ErrShape
	}
	p.Items, p.Last = *outer.Data, outer.Meta.Last
	return nil
}

// explain classifies a refusal: status 422 with a message and errors by field. The
// words for an empty stock and an empty account are unverified, so that the callers
// check both for a refusal without such words.
func explain(status int, _ http.Header, body []byte) *procurement.Error {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		if status >= 500 && bytes.Contains(bytes.ToLower(body), []byte("password")) {
			return procurement.Refuse(procurement.TimedOut, "status "+strconv.Itoa(status)) // it repeats the request
		}
		return nil
	}
	text := rest.RefusalText(body)
	class, low := procurement.Invalid, strings.ToLower(text)
	switch {
	case strings.Contains(low, "stock"):
		class = procurement.OutOfStock
	case strings.Contains(low, "balance"), strings.Contains(low, "insufficient"), strings.Contains(low, "funds"),
		strings.Contains(low, "not enough traffic"):
		class = procurement.InsufficientFunds
	}
	return procurement.Refuse(class, strings.TrimSpace("status "+strconv.Itoa(status)+": "+text))
}
