package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// dynamicRequest returns the least dynamic request that is accepted.
func dynamicRequest() session.CreateRequest {
	return session.CreateRequest{Type: "dynamic", ProductNo: "dyn_1"}
}

func staticRequest() session.CreateRequest {
	return session.CreateRequest{Type: "static", ProductNo: "sta_1", Quantity: new(2), Days: new(30),
		Location: session.Location{Country: "us"}}
}

func defaultsRequest() session.CreateRequest {
	return session.CreateRequest{Type: "static", ProductNo: "sta_1", Quantity: new(2), ProductDefaults: true}
}

// gb returns a number of GB in bytes, or -1 where that is no whole number.
func gb(text string) *int64 {
	n, err := domain.ParseDecimal(text, 9)
	if err != nil {
		n = -1
	}
	return &n
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
func check(f session.CreateRequest, terms session.Terms) (session.Spec, error) {
	s, err := f.Check()
	if err != nil {
		return s, err
	}
	return terms.Check(s)
}

func TestDefaultsOfARequest(t *testing.T) {
	s, err := check(dynamicRequest(), dynamicTerms())
	if err != nil || s.Bytes != 1_000_000_000 || s.Quantity != 1 || s.Protocol != session.HTTP || s.Rotation.Mode != session.OnDemand {
		t.Errorf("the least dynamic request: %+v, %v", s, err)
	}
	s, err = check(defaultsRequest(), staticTerms())
	if err != nil || s.Days != 30 || s.Location.Country != "DE" || s.Quantity != 2 || s.Rotation.Mode != session.Fixed {
		t.Errorf("a static request with the defaults of the product takes the shortest duration and the first country: %+v, %v", s, err)
	}
	s, err = check(staticRequest(), staticTerms())
	if err != nil || s.Location.Country != "US" {
		t.Errorf("a country is taken in any case: %+v, %v", s, err)
	}
}

// wholeTerms are those of a product that is sold in whole GB.
func wholeTerms() session.Terms {
	t := dynamicTerms()
	t.MinBytes, t.StepBytes = billing.GB, billing.GB
	return t
}

// The message names the unit, so that the next call can be right.
func TestTheUnitOfTrafficIsNamed(t *testing.T) {
	f := dynamicRequest()
	f.Bytes = gb("1.5")
	spec, err := f.Check()
	if err != nil {
		t.Fatal(err)
	}
	_, err = wholeTerms().Check(spec)
	var e *domain.Error
	if !errors.As(err, &e) || !errors.Is(err, domain.ErrInvalid) {
		t.Fatalf("refused with %v", err)
	}
	issues := e.Details["fields"].([]domain.FieldIssue)
	if len(issues) != 1 || issues[0].Field != "traffic_gb" || !strings.Contains(issues[0].Issue, "multiple of 1 GB") {
		t.Errorf("the fields are %v", issues)
	}
}

func TestFieldsOutOfBounds(t *testing.T) {
	edit := func(f session.CreateRequest, change func(*session.CreateRequest)) session.CreateRequest {
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		form  session.CreateRequest
		terms session.Terms
		field string // "" is accepted
	}{
		"no type":                     {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Type = "" }), dynamicTerms(), "type"},
		"another type":                {edit(defaultsRequest(), func(f *session.CreateRequest) { f.Type = "Static" }), staticTerms(), "type"},
		"no product":                  {edit(dynamicRequest(), func(f *session.CreateRequest) { f.ProductNo = "" }), dynamicTerms(), "product_no"},
		"a product of the other type": {dynamicRequest(), staticTerms(), "product_no"},
		"traffic 0.1":                 {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("0.1") }), dynamicTerms(), ""},
		"traffic 0.099":               {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("0.099") }), dynamicTerms(), "traffic_gb"},
		"traffic 1000":                {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("1e3") }), dynamicTerms(), ""},
		"traffic 1000.001":            {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("1000.001") }), dynamicTerms(), "traffic_gb"},
		"traffic of four decimals":    {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("0.1001") }), dynamicTerms(), "traffic_gb"},
		"traffic of half a unit":      {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("2.5") }), wholeTerms(), "traffic_gb"},
		"traffic of two units":        {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("2") }), wholeTerms(), ""},
		"traffic 0":                   {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("0") }), dynamicTerms(), "traffic_gb"},
		"traffic below 0":             {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Bytes = gb("-1") }), dynamicTerms(), "traffic_gb"},
		"days on a dynamic session":   {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Days = new(30) }), dynamicTerms(), "duration_days"},
		"traffic on a static session": {edit(staticRequest(), func(f *session.CreateRequest) { f.Bytes = gb("1") }), staticTerms(), "traffic_gb"},
		"quantity 100":                {edit(staticRequest(), func(f *session.CreateRequest) { f.Quantity = new(100) }), staticTerms(), ""},
		"quantity 101":                {edit(staticRequest(), func(f *session.CreateRequest) { f.Quantity = new(101) }), staticTerms(), "quantity"},
		"quantity 0":                  {edit(staticRequest(), func(f *session.CreateRequest) { f.Quantity = new(0) }), staticTerms(), "quantity"},
		"quantity 1.5":                {edit(staticRequest(), func(f *session.CreateRequest) { f.Quantity = new(-1) }), staticTerms(), "quantity"},
		"quantity 2.0":                {edit(staticRequest(), func(f *session.CreateRequest) { f.Quantity = new(2) }), staticTerms(), ""},
		"quantity 1e400":              {edit(staticRequest(), func(f *session.CreateRequest) { f.Quantity = new(-1) }), staticTerms(), "quantity"},
		"no quantity":                 {edit(staticRequest(), func(f *session.CreateRequest) { f.Quantity = nil }), staticTerms(), "quantity"},
		"90 days":                     {edit(staticRequest(), func(f *session.CreateRequest) { f.Days = new(90) }), staticTerms(), ""},
		"31 days":                     {edit(staticRequest(), func(f *session.CreateRequest) { f.Days = new(31) }), staticTerms(), "duration_days"},
		"no days":                     {edit(staticRequest(), func(f *session.CreateRequest) { f.Days = nil }), staticTerms(), "duration_days"},
		"no country":                  {edit(staticRequest(), func(f *session.CreateRequest) { f.Location.Country = "" }), staticTerms(), "country"},
		"a country not sold":          {edit(staticRequest(), func(f *session.CreateRequest) { f.Location.Country = "ZZ" }), staticTerms(), "country"},
		"a country of three letters":  {edit(staticRequest(), func(f *session.CreateRequest) { f.Location.Country = "USA" }), staticTerms(), "country"},
		"a city code":                 {edit(staticRequest(), func(f *session.CreateRequest) { f.Location.City = "new-york_1" }), staticTerms(), ""},
		"a hostile city":              {edit(staticRequest(), func(f *session.CreateRequest) { f.Location.City = "x' OR 1=1" }), staticTerms(), "city"},
		"a city of 65 characters":     {edit(staticRequest(), func(f *session.CreateRequest) { f.Location.City = strings.Repeat("a", 65) }), staticTerms(), "city"},
		"another protocol":            {edit(dynamicRequest(), func(f *session.CreateRequest) { f.Protocol = "HTTP" }), dynamicTerms(), "protocol"},
		"timed without an interval":   {edit(dynamicRequest(), func(f *session.CreateRequest) { f.RotationMode = "timed" }), dynamicTerms(), "rotation.interval_seconds"},
		"timed each 9 seconds": {edit(dynamicRequest(), func(f *session.CreateRequest) { f.RotationMode, f.RotationInterval = session.Timed, new(9*time.Second) }),
			dynamicTerms(), "rotation.interval_seconds"},
		"timed each 10 seconds": {edit(dynamicRequest(), func(f *session.CreateRequest) {
			f.RotationMode, f.RotationInterval = session.Timed, new(10*time.Second)
		}),
			dynamicTerms(), ""},
		"timed each 86401 seconds": {edit(dynamicRequest(), func(f *session.CreateRequest) {
			f.RotationMode, f.RotationInterval = session.Timed, new(86401*time.Second)
		}),
			dynamicTerms(), "rotation.interval_seconds"},
		"another rotation mode": {edit(dynamicRequest(), func(f *session.CreateRequest) { f.RotationMode = "always" }), dynamicTerms(), "rotation.mode"},
		"a static session that rotates": {edit(staticRequest(), func(f *session.CreateRequest) { f.RotationMode = "on_demand" }),
			staticTerms(), "rotation.mode"},
		"max_cost 0":                {edit(dynamicRequest(), func(f *session.CreateRequest) { f.MaxCost = new(domain.Money(0)) }), dynamicTerms(), "max_cost"},
		"another provisioning mode": {edit(dynamicRequest(), func(f *session.CreateRequest) { f.ProvisioningMode = "steal" }), dynamicTerms(), "provisioning_mode"},
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
	f := staticRequest()
	f.Location.Country = "UK"
	_, err := check(f, staticTerms())
	e, _ := errors.AsType[*domain.Error](err)
	if e == nil || !slices.Equal(e.Details["nearest"].([]string), []string{"DE"}) {
		t.Errorf("details.nearest is missing: %v", err)
	}
}

func TestTimedIntervalIsKept(t *testing.T) {
	f := dynamicRequest()
	f.RotationMode, f.RotationInterval = session.Timed, new(600*time.Second)
	s, err := check(f, dynamicTerms())
	if err != nil || s.Rotation.Interval != 10*time.Minute {
		t.Errorf("interval %v, %v", s.Rotation.Interval, err)
	}
}
