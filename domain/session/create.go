package session

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// Form is the body of a create call after binding, in either of its two forms.
// Numbers are their decimal text, so that no digit is lost; empty is absent.
type Form struct {
	Nested           bool // the body has config: a body without it is flat
	Type             string
	ProductNo        string
	TrafficGB        string
	Quantity         string
	Days             string
	Country          string
	City             string
	Protocol         string
	RotationMode     string
	RotationInterval string // seconds
	ProvisioningMode string
	MaxCost          string
}

// Terms are the bounds that a product sets.
type Terms struct {
	Type        Type
	Days        []int // static: ascending
	Countries   []string
	Cities      []string // none: any well-formed code
	MinQuantity int
	MaxQuantity int
	MinBytes    int64
	MaxBytes    int64
	// Sells reports whether a country and a city, either may be empty, are sold
	// together. Nil: whatever is listed is.
	Sells       func(Location) bool
	Nearest     func(country string) []string       // alternatives for a country that is not sold
	NearestCity func(country, city string) []string // alternatives for a city, in the country if there is one
}

// Spec is what is asked for, within every bound.
type Spec struct {
	Type      Type
	ProductNo string
	Bytes     int64
	Quantity  int
	Days      int
	Location  Location
	Protocol  Protocol
	Rotation  Rotation
	MaxCost   domain.Money // 0: no limit
	Existing  bool         // attach to a live session instead of buying
}

// Bounds of the fields that no product sets.
const (
	MaxQuantity = 100
	MinInterval = 10 * time.Second
	MaxInterval = 86400 * time.Second
)

var cityCode = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// field is the JSON path of a field in the form that was sent.
func (f Form) field(nested, flat string) string {
	if f.Nested {
		return "config." + nested
	}
	return flat
}

// checker collects the faults of a form.
type checker struct{ issues []domain.FieldIssue }

func (c *checker) add(field, issue string) {
	c.issues = append(c.issues, domain.FieldIssue{Field: field, Issue: issue})
}

func (c *checker) err() error {
	if c.issues == nil {
		return nil
	}
	return domain.InvalidFields(c.issues...)
}

// whole reads an integer of [lo, hi]; absent is zero and no fault.
func (c *checker) whole(field, text string, lo, hi int64) int64 {
	if text == "" {
		return 0
	}
	n, err := domain.ParseDecimal(text, 0)
	if err != nil || n < lo || n > hi {
		c.add(field, "must be a whole number from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
		return 0
	}
	return n
}

// Check reads what can be judged without knowing the product. Terms.Check
// judges the rest.
func (f Form) Check() (Spec, error) {
	var c checker
	s := Spec{Type: Type(f.Type), ProductNo: f.ProductNo, Protocol: Protocol(f.Protocol)}
	if s.Type != Dynamic && s.Type != Static {
		c.add(map[bool]string{true: "type", false: "session_type"}[f.Nested], "must be dynamic or static")
	}
	if s.ProductNo == "" || len(s.ProductNo) > 64 {
		c.add(f.field("product_no", "product_no"), "is required: a product code from GET /products")
	}
	if s.Protocol == "" {
		s.Protocol = HTTP
	}
	if s.Protocol != HTTP && s.Protocol != SOCKS5 {
		c.add(f.field("protocol", "protocol"), "must be http or socks5")
	}
	switch f.ProvisioningMode {
	case "", "purchase":
	case "existing":
		s.Existing = true
	default:
		c.add("provisioning_mode", "must be purchase or existing")
	}
	if f.MaxCost != "" {
		var err error
		if s.MaxCost, err = domain.ParseMoney(f.MaxCost); err != nil || s.MaxCost <= 0 {
			c.add("max_cost", "must be an amount above 0 with at most 6 decimals")
		}
	}
	f.checkRotation(&c, &s)
	f.checkAmount(&c, &s)
	s.Location = Location{Country: strings.ToUpper(f.Country), City: f.City}
	if f.Country != "" && len(f.Country) != 2 {
		c.add(f.field("country", "country_code"), "must be an ISO 3166-1 alpha-2 code")
	}
	if f.City != "" && !cityCode.MatchString(f.City) {
		c.add(f.field("city", "city"), "must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
	}
	return s, c.err()
}

func (f Form) checkRotation(c *checker, s *Spec) {
	mode, interval := f.field("rotation.mode", "rotation_mode"), f.field("rotation.interval_seconds", "rotation_interval_seconds")
	seconds := c.whole(interval, f.RotationInterval, int64(MinInterval/time.Second), int64(MaxInterval/time.Second))
	s.Rotation = Rotation{Mode: RotationMode(f.RotationMode)}
	switch s.Rotation.Mode {
	case "":
		s.Rotation.Mode = OnDemand
	case OnDemand, Fixed:
	case Timed:
		if f.RotationInterval == "" {
			c.add(interval, "is required with the mode timed: 10 to 86400")
		}
		s.Rotation.Interval = time.Duration(seconds) * time.Second
	default:
		c.add(mode, "must be on_demand, timed or fixed")
	}
	if s.Type == Static {
		if f.RotationMode != "" && s.Rotation.Mode != Fixed {
			c.add(mode, "a static session never rotates; leave it out")
		}
		s.Rotation = Rotation{Mode: Fixed}
	}
}

// checkAmount reads how much is bought: traffic, or IPs and days.
func (f Form) checkAmount(c *checker, s *Spec) {
	quantity := f.field("quantity", "quantity")
	if s.Type == Static {
		if f.Quantity == "" {
			c.add(quantity, "is required: 1 to 100")
		}
		s.Quantity = int(c.whole(quantity, f.Quantity, 1, MaxQuantity))
		days := f.field("duration_days", "duration")
		if f.Nested && f.Days == "" {
			c.add(days, "is required: a duration that the product lists")
		}
		s.Days = int(c.whole(days, f.Days, 1, 3650))
		if f.Nested && f.Country == "" {
			c.add("config.country", "is required: an ISO 3166-1 alpha-2 code")
		}
		if f.TrafficGB != "" {
			c.add(f.field("traffic_gb", "traffic_gb"), "a static session is not billed by traffic; leave it out")
		}
		return
	}
	s.Quantity = 1
	if f.Days != "" {
		c.add(f.field("duration_days", "duration"), "a dynamic session is not billed by time; leave it out")
	}
	text, field := f.TrafficGB, f.field("traffic_gb", "traffic_gb")
	if text == "" && !f.Nested && f.Quantity != "" {
		text, field = f.Quantity, quantity
	}
	if text == "" {
		text = "1"
	}
	milli, err := domain.ParseDecimal(text, 3)
	if err != nil || milli <= 0 || milli > 1_000_000_000 {
		c.add(field, "must be a number of GB above 0 with at most 3 decimals")
		return
	}
	s.Bytes = milli * (billing.GB / 1000)
}

// Check judges a spec by the terms of its product, and fills in what the form
// left to the product.
func (t Terms) Check(f Form, s Spec) (Spec, error) {
	var c checker
	if t.Type != s.Type {
		c.add(f.field("product_no", "product_no"), "is a "+string(t.Type)+" product; the session is "+string(s.Type))
		return s, c.err()
	}
	if s.Type == Static {
		if s.Days == 0 {
			s.Days = t.Days[0]
		}
		if !slices.Contains(t.Days, s.Days) {
			c.add(f.field("duration_days", "duration"), "must be a duration that the product lists")
		}
		if s.Quantity < t.MinQuantity || s.Quantity > t.MaxQuantity {
			c.add(f.field("quantity", "quantity"), "must be "+strconv.Itoa(t.MinQuantity)+" to "+strconv.Itoa(t.MaxQuantity)+" for this product")
		}
		if s.Location.Country == "" && !f.Nested && len(t.Countries) > 0 {
			s.Location.Country = t.Countries[0]
		}
	} else if s.Bytes < t.MinBytes || s.Bytes > t.MaxBytes {
		c.add(f.field("traffic_gb", "traffic_gb"), "must be "+domain.FormatDecimal(t.MinBytes, 9)+" to "+domain.FormatDecimal(t.MaxBytes, 9)+" GB for this product")
	}
	return s, t.checkPlace(&c, f, s.Location)
}

// checkPlace refuses a place that is not sold, with the nearest ones that are.
// It never widens: what is not listed is not sold.
func (t Terms) checkPlace(c *checker, f Form, l Location) error {
	sells := func(l Location) bool { return t.Sells == nil || t.Sells(l) }
	noCountry := l.Country != "" && (!slices.Contains(t.Countries, l.Country) || !sells(Location{Country: l.Country}))
	noCity := l.City != "" && len(t.Cities) > 0 && !slices.Contains(t.Cities, l.City)
	switch {
	case noCity:
		c.add(f.field("city", "city"), "must be a city that the product lists")
	case l.City != "" && !noCountry && !sells(l):
		noCity = true
		c.add(f.field("city", "city"), "is not sold with this product in that country")
	}
	if noCountry {
		c.add(f.field("country", "country_code"), "is not sold with this product")
		return domain.InvalidFields(c.issues...).With("nearest", t.Nearest(l.Country))
	}
	if noCity && t.NearestCity != nil {
		return domain.InvalidFields(c.issues...).With("nearest", t.NearestCity(l.Country, l.City))
	}
	return c.err()
}
