package httpapi_test

import (
	"strings"
	"testing"
)

// An issue describes in words what a value violates; of a pattern it has the description.
func TestIssuesAreInWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	for _, c := range []struct{ method, path, body, field, issue string }{
		{"GET", "/v1/sessions?country=USA", "", "country", "must be an ISO 3166-1 alpha-2 code"},
		{"GET", "/v1/sessions?product_no=" + strings.Repeat("x", 65), "", "product_no", "must have at most 64 characters"},
		{"GET", "/v1/sessions?page=0", "", "page", "must be an integer of at least 1"},
		{"GET", "/v1/sessions?page=x", "", "page", "must be an integer"},
		{"GET", "/v1/sessions?page=", "", "page", "must be an integer"},
		{"POST", "/v1/account/keys", `{"name":""}`, "name", "must have at least 2 characters"},
		{"POST", "/v1/account/keys", `{"name":1}`, "name", "must be a string"},
		// A refused field is printed as it was written.
		{"POST", "/v1/account/rotate-key", `{"apiSecret":"x"}`, "apiSecret", "is not a field of this body; did you mean api_secret?"},
		// A body that begins like neither form of a create call is answered with the nested one; the most
		// that can be bought is the product's.
		{"POST", "/v1/sessions", `{}`, "type", "must be dynamic or static"},
		{"POST", "/v1/sessions", `{"type":"dynamic"}`, "config.product_no", "is required: the product_no of a product that is listed"},
		{"POST", "/v1/sessions", `{"session_type":"dynamic"}`, "product_no", "is required: the product_no of a product that is listed"},
		{"POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":1000000000}}`,
			"config.traffic_gb", "must be 0.1 to 1000 GB for this product"},
	} {
		r := w.do(c.method, c.path, c.body, a.as).refused(400, "INVALID_REQUEST")
		if r.str("error.details.fields.0.field") != c.field || r.str("error.details.fields.0.issue") != c.issue {
			t.Errorf("%s %s %s: %s", c.method, c.path, c.body, r.body)
		}
	}
}
