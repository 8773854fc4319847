package sessions

import (
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

func TestTheFlatFormBuysTrafficByQuantity(t *testing.T) {
	t.Parallel()
	b := createBody{SessionType: "dynamic", ProductNo: "dyn", Quantity: "2.5"}
	r, err := b.request()
	if err != nil || r.Bytes == nil || *r.Bytes != 25*billing.GB/10 || !r.ProductDefaults {
		t.Errorf("%+v, %v", r, err)
	}
	if got := b.path("traffic_gb"); got != "quantity" {
		t.Errorf("traffic_gb is %s", got)
	}
	b.TrafficGB = "1"
	if r, _ = b.request(); *r.Bytes != billing.GB || b.path("traffic_gb") != "traffic_gb" {
		t.Errorf("traffic_gb does not win: %+v", r)
	}
}

func TestFaultsHaveThePathsOfTheForm(t *testing.T) {
	t.Parallel()
	nested, flat := createBody{Config: &createConfig{}}, createBody{ProductNo: "dyn"}
	for field, paths := range map[string][2]string{ // nested, flat
		"type":                      {"type", "session_type"},
		"product_no":                {"config.product_no", "product_no"},
		"duration_days":             {"config.duration_days", "duration"},
		"country":                   {"config.country", "country_code"},
		"rotation.interval_seconds": {"config.rotation.interval_seconds", "rotation_interval_seconds"},
		"max_cost":                  {"max_cost", "max_cost"},
	} {
		if got := nested.path(field); got != paths[0] {
			t.Errorf("nested: %s is %s, want %s", field, got, paths[0])
		}
		if got := flat.path(field); got != paths[1] {
			t.Errorf("flat: %s is %s, want %s", field, got, paths[1])
		}
		if got := (createBody{Type: "dynamic"}).path(field); got != paths[0] {
			t.Errorf("a body that begins like neither form: %s is %s, want %s", field, got, paths[0])
		}
	}
	e := renamed(domain.InvalidField("country", "is not sold").With("nearest", []string{"DE"}), nested.path).(*domain.Error)
	if e.Message != "config.country is not sold" || e.Details["nearest"] == nil {
		t.Errorf("%+v", e)
	}
	if err := renamed(session.ErrNotFound, nested.path); err != error(session.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
