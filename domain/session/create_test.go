package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// nestedDynamic and flatStatic are the least forms that are accepted.
func nestedDynamic() session.Form {
	return session.Form{Nested: true, Type: "dynamic", ProductNo: "dyn_1"}
}

func nestedStatic() session.Form {
	return session.Form{Nested: true, Type: "static", ProductNo: "sta_1", Quantity: "2", Days: "30", Country: "us"}
}

func flatStatic() session.Form {
	return session.Form{Type: "static", ProductNo: "sta_1", Quantity: "2"}
}

func dynamicTerms() session.Terms {
	return session.Terms{Type: session.Dynamic, Countries: []string{"DE", "US"}, MinBytes: 100_000_000, MaxBytes: 1_000_000_000_000,
		MinQuantity: 1, MaxQuantity: 1, Nearest: func(string) []string { return []string{"DE"} }}
}

func staticTerms() session.Terms {
	return session.Terms{Type: session.Static, Days: []int{30, 90}, Countries: []string{"DE", "US"},
		MinQuantity: 1, MaxQuantity: 100, Nearest: func(string) []string { return []string{"DE"} }}
}

// check runs both checks as a create call does.
func check(f session.Form, terms session.Terms) (session.Spec, error) {
	s, err := f.Check()
	if err != nil {
		return s, err
	}
	return terms.Check(f, s)
}

func TestDefaultsOfTheForms(t *testing.T) {
	s, err := check(nestedDynamic(), dynamicTerms())
	if err != nil || s.Bytes != 1_000_000_000 || s.Quantity != 1 || s.Protocol != session.HTTP || s.Rotation.Mode != session.OnDemand {
		t.Errorf("the least dynamic form: %+v, %v", s, err)
	}
	s, err = check(flatStatic(), staticTerms())
	if err != nil || s.Days != 30 || s.Location.Country != "DE" || s.Quantity != 2 || s.Rotation.Mode != session.Fixed {
		t.Errorf("the least flat static form takes the shortest duration and the first country: %+v, %v", s, err)
	}
	s, err = check(nestedStatic(), staticTerms())
	if err != nil || s.Location.Country != "US" {
		t.Errorf("a country is taken in any case: %+v, %v", s, err)
	}
	flat := session.Form{Type: "dynamic", ProductNo: "dyn_1", Quantity: "2.5"}
	if s, err = check(flat, dynamicTerms()); err != nil || s.Bytes != 2_500_000_000 {
		t.Errorf("in the flat form quantity is the GB: %+v, %v", s, err)
	}
}

func TestFieldsOutOfBounds(t *testing.T) {
	edit := func(f session.Form, change func(*session.Form)) session.Form { change(&f); return f }
	for name, c := range map[string]struct {
		form  session.Form
		terms session.Terms
		field string // "" is accepted
	}{
		"no type":                     {edit(nestedDynamic(), func(f *session.Form) { f.Type = "" }), dynamicTerms(), "type"},
		"another type":                {edit(flatStatic(), func(f *session.Form) { f.Type = "Static" }), staticTerms(), "session_type"},
		"no product":                  {edit(nestedDynamic(), func(f *session.Form) { f.ProductNo = "" }), dynamicTerms(), "config.product_no"},
		"a product of the other type": {nestedDynamic(), staticTerms(), "config.product_no"},
		"traffic 0.1":                 {edit(nestedDynamic(), func(f *session.Form) { f.TrafficGB = "0.1" }), dynamicTerms(), ""},
		"traffic 0.099":               {edit(nestedDynamic(), func(f *session.Form) { f.TrafficGB = "0.099" }), dynamicTerms(), "config.traffic_gb"},
		"traffic 1000":                {edit(nestedDynamic(), func(f *session.Form) { f.TrafficGB = "1e3" }), dynamicTerms(), ""},
		"traffic 1000.001":            {edit(nestedDynamic(), func(f *session.Form) { f.TrafficGB = "1000.001" }), dynamicTerms(), "config.traffic_gb"},
		"traffic of four decimals":    {edit(nestedDynamic(), func(f *session.Form) { f.TrafficGB = "0.1001" }), dynamicTerms(), "config.traffic_gb"},
		"traffic 0":                   {edit(nestedDynamic(), func(f *session.Form) { f.TrafficGB = "0" }), dynamicTerms(), "config.traffic_gb"},
		"traffic below 0":             {edit(nestedDynamic(), func(f *session.Form) { f.TrafficGB = "-1" }), dynamicTerms(), "config.traffic_gb"},
		"days on a dynamic session":   {edit(nestedDynamic(), func(f *session.Form) { f.Days = "30" }), dynamicTerms(), "config.duration_days"},
		"traffic on a static session": {edit(nestedStatic(), func(f *session.Form) { f.TrafficGB = "1" }), staticTerms(), "config.traffic_gb"},
		"quantity 100":                {edit(nestedStatic(), func(f *session.Form) { f.Quantity = "100" }), staticTerms(), ""},
		"quantity 101":                {edit(nestedStatic(), func(f *session.Form) { f.Quantity = "101" }), staticTerms(), "config.quantity"},
		"quantity 0":                  {edit(nestedStatic(), func(f *session.Form) { f.Quantity = "0" }), staticTerms(), "config.quantity"},
		"quantity 1.5":                {edit(nestedStatic(), func(f *session.Form) { f.Quantity = "1.5" }), staticTerms(), "config.quantity"},
		"quantity 2.0":                {edit(nestedStatic(), func(f *session.Form) { f.Quantity = "2.0" }), staticTerms(), ""},
		"quantity 1e400":              {edit(nestedStatic(), func(f *session.Form) { f.Quantity = "1e400" }), staticTerms(), "config.quantity"},
		"no quantity":                 {edit(nestedStatic(), func(f *session.Form) { f.Quantity = "" }), staticTerms(), "config.quantity"},
		"90 days":                     {edit(nestedStatic(), func(f *session.Form) { f.Days = "90" }), staticTerms(), ""},
		"31 days":                     {edit(nestedStatic(), func(f *session.Form) { f.Days = "31" }), staticTerms(), "config.duration_days"},
		"no days, nested":             {edit(nestedStatic(), func(f *session.Form) { f.Days = "" }), staticTerms(), "config.duration_days"},
		"no country, nested":          {edit(nestedStatic(), func(f *session.Form) { f.Country = "" }), staticTerms(), "config.country"},
		"a country not sold":          {edit(nestedStatic(), func(f *session.Form) { f.Country = "ZZ" }), staticTerms(), "config.country"},
		"a country of three letters":  {edit(nestedStatic(), func(f *session.Form) { f.Country = "USA" }), staticTerms(), "config.country"},
		"a city code":                 {edit(nestedStatic(), func(f *session.Form) { f.City = "new-york_1" }), staticTerms(), ""},
		"a hostile city":              {edit(nestedStatic(), func(f *session.Form) { f.City = "x' OR 1=1" }), staticTerms(), "config.city"},
		"a city of 65 characters":     {edit(nestedStatic(), func(f *session.Form) { f.City = strings.Repeat("a", 65) }), staticTerms(), "config.city"},
		"another protocol":            {edit(nestedDynamic(), func(f *session.Form) { f.Protocol = "HTTP" }), dynamicTerms(), "config.protocol"},
		"timed without an interval":   {edit(nestedDynamic(), func(f *session.Form) { f.RotationMode = "timed" }), dynamicTerms(), "config.rotation.interval_seconds"},
		"timed each 9 seconds": {edit(nestedDynamic(), func(f *session.Form) { f.RotationMode, f.RotationInterval = "timed", "9" }),
			dynamicTerms(), "config.rotation.interval_seconds"},
		"timed each 10 seconds": {edit(nestedDynamic(), func(f *session.Form) { f.RotationMode, f.RotationInterval = "timed", "10" }),
			dynamicTerms(), ""},
		"timed each 86401 seconds": {edit(nestedDynamic(), func(f *session.Form) { f.RotationMode, f.RotationInterval = "timed", "86401" }),
			dynamicTerms(), "config.rotation.interval_seconds"},
		"another rotation mode": {edit(nestedDynamic(), func(f *session.Form) { f.RotationMode = "always" }), dynamicTerms(), "config.rotation.mode"},
		"a static session that rotates": {edit(nestedStatic(), func(f *session.Form) { f.RotationMode = "on_demand" }),
			staticTerms(), "config.rotation.mode"},
		"max_cost 0":                 {edit(nestedDynamic(), func(f *session.Form) { f.MaxCost = "0" }), dynamicTerms(), "max_cost"},
		"another provisioning mode":  {edit(nestedDynamic(), func(f *session.Form) { f.ProvisioningMode = "steal" }), dynamicTerms(), "provisioning_mode"},
		"flat fields are named flat": {edit(flatStatic(), func(f *session.Form) { f.Quantity = "101" }), staticTerms(), "quantity"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := check(c.form, c.terms)
			if c.field == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			e, isOurs := errors.AsType[*domain.Error](err)
			if !isOurs || !errors.Is(err, domain.ErrInvalid) {
				t.Fatalf("got %v, want INVALID_REQUEST", err)
			}
			issues, _ := e.Details["fields"].([]domain.FieldIssue)
			if !slices.ContainsFunc(issues, func(i domain.FieldIssue) bool { return i.Field == c.field }) {
				t.Errorf("the faults are %v, want one of %s", issues, c.field)
			}
		})
	}
}

func TestARefusedCountryComesWithAlternatives(t *testing.T) {
	f := nestedStatic()
	f.Country = "UK"
	_, err := check(f, staticTerms())
	e, _ := errors.AsType[*domain.Error](err)
	if e == nil || !slices.Equal(e.Details["nearest"].([]string), []string{"DE"}) {
		t.Errorf("details.nearest is missing: %v", err)
	}
}

func TestTimedIntervalIsKept(t *testing.T) {
	f := nestedDynamic()
	f.RotationMode, f.RotationInterval = "timed", "600"
	s, err := check(f, dynamicTerms())
	if err != nil || s.Rotation.Interval != 10*time.Minute {
		t.Errorf("interval %v, %v", s.Rotation.Interval, err)
	}
}
