package proxyseller

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"agentproxy/test/fake/seller"
)

// trafficPackage is a package of residential traffic.
type trafficPackage struct {
	key             string
	active, linked  bool
	rotation        int
	limit, used     int64
	ends            time.Time
	login, password string
	listed          bool // the list with the credential was created
}

// view returns a package as the API does: bytes are texts, its end is an object.
func (p *trafficPackage) view() map[string]any {
	return map[string]any{"package_key": p.key, "is_active": p.active, "is_link_date": p.linked, "rotation": p.rotation,
		"traffic_limit": bytesText(p.limit), "traffic_usage": bytesText(p.used), "traffic_left": bytesText(p.limit - p.used),
		"traffic_usage_sub": "0", "traffic_limit_sub": "0", "traffic_left_sub": "0",
		"expired_at": map[string]any{"date": p.ends.Format("2006-01-02 15:04:05.000000"), "timezone_type": 3, "timezone": "UTC"}}
}

func bytesText(n int64) string { return strconv.FormatInt(n, 10) }

var (
	noTariff  = fault{"Tarif not found", 0}
	noPackage = fault{"not-found", 404}
)

// Use counts traffic of a package.
func (s *Server) Use(key string, bytes int64) {
	s.locked(func() {
		if p := s.packageOf(key); p != nil {
			p.used += bytes
		}
	})
}

// Active reports whether a package is enabled.
func (s *Server) Active(key string) (on bool) {
	s.locked(func() {
		if p := s.packageOf(key); p != nil {
			on = p.active
		}
	})
	return on
}

func (s *Server) packageOf(key string) *trafficPackage {
	for _, p := range s.packages {
		if p.key == key {
			return p
		}
	}
	return nil
}

// ends returns when the tariff and every package end.
func (s *Server) ends() time.Time {
	t := s.started.UTC().AddDate(0, 1, 0)
	return time.Date(t.Year(), t.Month(), t.Day(), 23, 59, 59, 0, time.UTC)
}

func (s *Server) mainPackage() string {
	if s.tariff < 0 {
		return failure(noTariff)
	}
	return success(map[string]any{"package_key": "1234567890abcdefedcb", "is_active": true, "rotation": 60,
		"tarif_id": "68b1f0c4e13a4c0f1a2b3c99", "traffic_limit": bytesText(1e12), "traffic_usage": bytesText(1e12 - s.tariff),
		"traffic_left": bytesText(s.tariff), "expired_at": s.ends().Format("02.01.2006 15:04:05"), "auto_renew": false})
}

func (s *Server) listPackages() string {
	list := []any{}
	for _, p := range s.packages {
		list = append(list, p.view())
	}
	return success(list)
}

// packageBody is the request of create and update.
type packageBody struct {
	PackageKey   string `json:"package_key"`
	Rotation     *int   `json:"rotation"`
	TrafficLimit string `json:"traffic_limit"`
	ExpiredAt    string `json:"expired_at"`
	Active       *bool  `json:"is_active"`
	IsLinkDate   *bool  `json:"is_link_date"`
}

// limit reads a limit and takes it from the tariff.
func (s *Server) limit(r *http.Request, text string, had int64) (n int64, refused string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, unknownError()
	}
	if s.tariff < 0 {
		return 0, failure(noTariff)
	}
	left := s.tariff + had
	if seller.FaultOf(r.Context()) == seller.NoFunds || seller.FaultOf(r.Context()) == seller.OutOfStock {
		left = 0
	}
	if n >= left-1 {
		return 0, failure(fault{fmt.Sprintf("Set [ traffic_limit ] less than [ traffic_left - 1 ] in main package: %d", left), 0})
	}
	return n, ""
}

func (s *Server) createPackage(r *http.Request) string {
	var b packageBody
	if !read(r, &b) || b.Rotation == nil || *b.Rotation < -1 || *b.Rotation > 3600 {
		return unknownError()
	}
	n, refused := s.limit(r, b.TrafficLimit, 0)
	if refused != "" {
		return refused
	}
	s.Sold(r)
	id := s.next()
	p := &trafficPackage{key: fmt.Sprintf("%020x", 0xbbfc4a2d00+id), active: true, linked: b.IsLinkDate != nil && *b.IsLinkDate,
		rotation: *b.Rotation, limit: n, ends: s.ends(), login: fmt.Sprintf("%016x", 0x3c8aa1d4000+id), password: fmt.Sprintf("AZT62Dx%d", id)}
	s.packages = append(s.packages, p)
	s.tariff -= n
	s.created++
	return success(p.view())
}

func (s *Server) updatePackage(r *http.Request) string {
	var b packageBody
	if !read(r, &b) {
		return unknownError()
	}
	p := s.packageOf(b.PackageKey)
	if p == nil {
		return failure(noPackage)
	}
	if b.TrafficLimit != "" {
		n, refused := s.limit(r, b.TrafficLimit, p.limit)
		if refused != "" {
			return refused
		}
		s.tariff += p.limit - n
		p.limit = n
	}
	if b.ExpiredAt != "" {
		end, err := time.Parse("02.01.2006", b.ExpiredAt)
		if err != nil || end.After(s.ends()) {
			return unknownError()
		}
		p.ends = end.Add(24*time.Hour - time.Second)
	}
	if b.Rotation != nil {
		p.rotation = *b.Rotation
	}
	if b.Active != nil {
		p.active = *b.Active
	}
	if b.IsLinkDate != nil {
		p.linked = *b.IsLinkDate
	}
	return success(p.view())
}

// deletePackage answers with JSON inside a text, and with a success for an unknown
// package.
func (s *Server) deletePackage(r *http.Request) string {
	var b packageBody
	if !read(r, &b) {
		return unknownError()
	}
	p := s.packageOf(b.PackageKey)
	if p == nil {
		return success(`{"status":"not-found"}`)
	}
	s.tariff += p.limit - p.used
	s.packages = slices.DeleteFunc(s.packages, func(q *trafficPackage) bool { return q == p })
	return success(`{"status":"delete"}`)
}

// tools serves the list with the credential of the gateway. A repeated PUT returns the
// same list.
func (s *Server) tools(r *http.Request) string {
	var b packageBody
	if !read(r, &b) {
		return unknownError()
	}
	p := s.packageOf(b.PackageKey)
	if p == nil {
		return failure(noPackage)
	}
	p.listed = true
	return success(p.list())
}

func (p *trafficPackage) list() map[string]any {
	return map[string]any{"id": 561, "title": "Tools", "login": p.login, "password": p.password, "whitelist": "",
		"rotation": p.rotation, "geo": map[string]any{}, "export": map[string]any{"ports": 1000, "ext": "txt"}}
}

func (s *Server) lists(r *http.Request) string {
	p := s.packageOf(r.URL.Query().Get("package_key"))
	if p == nil {
		return failure(noPackage)
	}
	list := []any{}
	if p.listed {
		list = append(list, p.list())
	}
	return success(list)
}
