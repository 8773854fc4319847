package session

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/country"
)

// CreateRequest represents what an agent asks for. A nil field was not given; a
// number below zero was given and is none that the service can represent, which
// Check refuses like any other that is out of bounds.
type CreateRequest struct {
	Type             Type
	ProductNo        string
	Bytes            *int64       // dynamic; nil means 1 GB
	Quantity         *int         // static: IPs
	Days             *int         // static
	Location         Location     // the country in any case
	Protocol         Protocol     // empty means HTTP
	RotationMode     RotationMode // empty means OnDemand
	RotationInterval *time.Duration
	ProvisioningMode ProvisioningMode // empty means Purchase
	MaxCost          *domain.Money    // nil means no limit
	Labels           Labels
	AllowedIPs       []string // CIDR or addresses
	AutoTopUp        *AutoTopUp
	// ProductDefaults gives a static session the product's shortest duration and
	// first country where Days and the country are missing. Without it they are
	// required.
	ProductDefaults bool
}

// ProvisioningMode is how a session is obtained.
type ProvisioningMode string

// Purchase buys a session; Existing attaches to the newest live one of the product.
const (
	Purchase ProvisioningMode = "purchase"
	Existing ProvisioningMode = "existing"
)

// ProvisioningModes lists every mode.
var ProvisioningModes = []ProvisioningMode{Purchase, Existing}

// Terms represents the bounds that a product sets.
type Terms struct {
	Type        Type
	Days        []int // static: ascending
	Countries   []string
	Cities      []string // empty means any label
	MinQuantity int
	MaxQuantity int
	MinBytes    int64
	MaxBytes    int64
	StepBytes   int64 // the traffic is a multiple of it; 0 means TrafficStep
	// Sells reports whether a country and a city, either may be empty, are sold
	// together. Nil means that all that is listed is sold.
	Sells       func(Location) bool
	Nearest     func(country string) []string       // alternatives for a country that is not sold
	NearestCity func(country, city string) []string // alternatives for a city, in the country if there is one
}

// Spec represents a request within every bound.
type Spec struct {
	Type      Type
	ProductNo string
	Bytes     int64
	Quantity  int
	Days      int
	Location  Location
	Protocol  Protocol
	Rotation  Rotation
	MaxCost   domain.Money // 0 means no limit
	Existing  bool         // attach to a live session instead of buying
	Labels    Labels

	AllowedIPs []netip.Prefix
	AutoTopUp  AutoTopUp

	// AnyCountry selects the first country of the product where Location has none; without it a
	// static session needs one, if the product lists countries.
	AnyCountry bool
}

// Bounds of the fields that no product sets. The document of the API and the
// checks of a catalogue are made from the same figures.
const (
	MaxQuantity = 100
	MaxDays     = 3650
	MaxGB       = 1_000_000
	TrafficStep = billing.GB / 1000 // bytes: traffic has three decimals of a GB
	MinInterval = 10 * time.Second
	MaxInterval = 86400 * time.Second
	MaxLabel    = 64 // characters of a product code or a city code
)

// LabelClass is the class of characters that a city code and a product code are
// made of, as a regular expression.
const LabelClass = `[A-Za-z0-9_-]`

var label = regexp.MustCompile(fmt.Sprintf(`^%s{1,%d}$`, LabelClass, MaxLabel))

// IsLabel reports whether text can be a city code or a product code: 1 to
// MaxLabel characters of LabelClass.
func IsLabel(text string) bool { return label.MatchString(text) }

// checker collects the issues of a request. Fields have the names of the domain
// (traffic_gb, rotation.mode); a transport maps them to the paths that its caller
// used.
type checker struct{ issues []domain.FieldIssue }

func (c *checker) add(field, format string, args ...any) {
	c.issues = append(c.issues, domain.FieldIssue{Field: field, Issue: fmt.Sprintf(format, args...)})
}

// addIssues adds the issues of another check.
func (c *checker) addIssues(err error) {
	if e, ok := errors.AsType[*domain.Error](err); ok {
		issues, _ := e.Details["fields"].([]domain.FieldIssue)
		c.issues = append(c.issues, issues...)
	}
}

func (c *checker) err() error {
	if c.issues == nil {
		return nil
	}
	return domain.InvalidFields(c.issues...)
}

// integer returns the number of a field that is an integer of [lo, hi]. It returns
// 0 if the field was not given or has an issue.
func (c *checker) integer(field string, n *int, lo, hi int) int {
	if n == nil {
		return 0
	}
	if *n < lo || *n > hi {
		c.add(field, "must be a whole number from %d to %d", lo, hi)
		return 0
	}
	return *n
}

// Check returns the specification that a request asks for, or INVALID_REQUEST
// with every field that is out of bounds whatever the product. Terms.Check
// applies the bounds of the product.
func (r CreateRequest) Check() (Spec, error) {
	var c checker
	s := Spec{Type: r.Type, ProductNo: r.ProductNo, Protocol: cmp.Or(r.Protocol, HTTP), Location: r.Location}
	if s.Type != Dynamic && s.Type != Static {
		c.add("type", "must be dynamic or static")
	}
	if s.ProductNo == "" || len(s.ProductNo) > MaxLabel {
		c.add("product_no", "is required: the product_no of a product that is listed")
	}
	if s.Protocol != HTTP && s.Protocol != SOCKS5 {
		c.add("protocol", "must be http or socks5")
	}
	switch cmp.Or(r.ProvisioningMode, Purchase) {
	case Purchase:
	case Existing:
		s.Existing = true
	default:
		c.add("provisioning_mode", "must be purchase or existing")
	}
	if r.MaxCost != nil {
		if s.MaxCost = *r.MaxCost; s.MaxCost <= 0 {
			c.add("max_cost", "must be an amount above 0 with at most 6 decimals")
		}
	}
	if r.Labels.check(&c); len(r.Labels) > 0 {
		s.Labels = r.Labels
	}
	var err error
	if s.AllowedIPs, err = ParseAllowedIPs(r.AllowedIPs); err != nil {
		c.addIssues(err)
	}
	r.checkAutoTopUp(&c, &s)
	if s.Existing && (s.Labels != nil || s.AllowedIPs != nil || r.AutoTopUp != nil) {
		c.add("provisioning_mode", "existing takes no settings; change those of a live session with PATCH")
	}
	r.checkRotation(&c, &s)
	if s.Type == Static {
		r.checkStatic(&c, &s)
	} else {
		r.checkTraffic(&c, &s)
	}
	s.Location.Country = strings.ToUpper(s.Location.Country)
	if s.Location.Country != "" && len(s.Location.Country) != 2 {
		issue := "must be an ISO 3166-1 alpha-2 code"
		if code := country.Meant(s.Location.Country); code != "" {
			issue += "; did you mean " + code + "?"
		}
		c.add("country", "%s", issue)
	}
	if s.Location.City != "" && !IsLabel(s.Location.City) {
		c.add("city", "must be 1 to %d of A-Z, a-z, 0-9, _ and -", MaxLabel)
	}
	return s, c.err()
}

func (r CreateRequest) checkAutoTopUp(c *checker, s *Spec) {
	switch {
	case r.AutoTopUp == nil:
	case s.Type == Static:
		c.add("auto_top_up", "a static session is not billed by traffic; leave it out")
	default:
		s.AutoTopUp = *r.AutoTopUp
		s.AutoTopUp.check(c)
	}
}

func (r CreateRequest) checkRotation(c *checker, s *Spec) {
	const interval = "rotation.interval_seconds"
	lo, hi := int(MinInterval/time.Second), int(MaxInterval/time.Second)
	s.Rotation = Rotation{Mode: cmp.Or(r.RotationMode, OnDemand)}
	if d := r.RotationInterval; d != nil && (*d < MinInterval || *d > MaxInterval || *d%time.Second != 0) {
		c.add(interval, "must be a whole number from %d to %d", lo, hi)
	}
	switch s.Rotation.Mode {
	case OnDemand, Fixed:
	case Timed:
		if r.RotationInterval == nil {
			c.add(interval, "is required with the mode timed: %d to %d", lo, hi)
		} else {
			s.Rotation.Interval = *r.RotationInterval
		}
	default:
		c.add("rotation.mode", "must be on_demand, timed or fixed")
	}
	if s.Type == Static {
		if r.RotationMode != "" && s.Rotation.Mode != Fixed {
			c.add("rotation.mode", "a static session never rotates; leave it out")
		}
		s.Rotation = Rotation{Mode: Fixed}
	}
}

// checkStatic checks how many IPs are bought, for how long and where.
func (r CreateRequest) checkStatic(c *checker, s *Spec) {
	if r.Quantity == nil {
		c.add("quantity", "is required: 1 to %d", MaxQuantity)
	}
	s.Quantity = c.integer("quantity", r.Quantity, 1, MaxQuantity)
	if r.Days == nil && !r.ProductDefaults {
		c.add("duration_days", "is required: a duration that the product lists")
	}
	s.Days = c.integer("duration_days", r.Days, 1, MaxDays)
	s.AnyCountry = r.ProductDefaults
	if r.Bytes != nil {
		c.add("traffic_gb", "a static session is not billed by traffic; leave it out")
	}
}

// checkTraffic checks how much traffic is bought.
func (r CreateRequest) checkTraffic(c *checker, s *Spec) {
	s.Quantity, s.Bytes = 1, billing.GB
	if r.Days != nil {
		c.add("duration_days", "a dynamic session is not billed by time; leave it out")
	}
	if r.Bytes == nil {
		return
	}
	// The most is the product's, which names it.
	if s.Bytes = *r.Bytes; s.Bytes <= 0 || s.Bytes%TrafficStep != 0 {
		c.add("traffic_gb", "must be a number of GB above 0 with at most 3 decimals")
	}
}

// Check applies the bounds of a product to s, and takes the product's shortest
// duration and first country where s has none. It returns INVALID_REQUEST with
// every field that is out of bounds.
func (t Terms) Check(s Spec) (Spec, error) {
	var c checker
	if t.Type != s.Type {
		c.add("product_no", "is a %s product; the session is %s", t.Type, s.Type)
		return s, c.err()
	}
	if s.Type == Static {
		if s.Days == 0 {
			s.Days = t.Days[0]
		}
		if !slices.Contains(t.Days, s.Days) {
			c.add("duration_days", "must be a duration that the product lists: %s", joined(t.Days))
		}
		if s.Quantity < t.MinQuantity || s.Quantity > t.MaxQuantity {
			c.add("quantity", "must be %d to %d for this product", t.MinQuantity, t.MaxQuantity)
		}
		switch {
		case s.Location.Country != "" || len(t.Countries) == 0:
		case s.AnyCountry:
			s.Location.Country = t.Countries[0]
		default:
			c.add("country", "is required: an ISO 3166-1 alpha-2 code that the product lists")
		}
	} else if s.Bytes < t.MinBytes || s.Bytes > t.MaxBytes {
		c.add("traffic_gb", "must be %s to %s GB for this product",
			domain.FormatDecimal(t.MinBytes, 9), domain.FormatDecimal(t.MaxBytes, 9))
	} else if t.StepBytes > 0 && s.Bytes%t.StepBytes != 0 {
		c.add("traffic_gb", "must be a multiple of %s GB: this product is sold in whole units of it",
			domain.FormatDecimal(t.StepBytes, 9))
	}
	return s, t.checkPlace(&c, s.Location)
}

// checkPlace returns INVALID_REQUEST for a place that is not sold, with the
// nearest ones that are. It never takes a wider place in its stead.
func (t Terms) checkPlace(c *checker, l Location) error {
	sells := func(l Location) bool { return t.Sells == nil || t.Sells(l) }
	noCountry := l.Country != "" && (!slices.Contains(t.Countries, l.Country) || !sells(Location{Country: l.Country}))
	noCity := l.City != "" && len(t.Cities) > 0 && !slices.Contains(t.Cities, l.City)
	switch {
	case noCity:
		c.add("city", "must be a city that the product lists")
	case l.City != "" && !noCountry && !sells(l):
		noCity = true
		c.add("city", "is not sold with this product in that country")
	}
	if noCountry {
		c.add("country", "is not sold with this product")
		return domain.InvalidFields(c.issues...).With("nearest", t.Nearest(l.Country))
	}
	if noCity && t.NearestCity != nil {
		return domain.InvalidFields(c.issues...).With("nearest", t.NearestCity(l.Country, l.City))
	}
	return c.err()
}

// joined writes numbers with commas between them.
func joined(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}
