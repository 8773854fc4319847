package list

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/country"
	"agentproxy/domain/session"
)

// columnNames are the columns in the order in which they need no name.
var columnNames = []string{"country", "city", "type", "ends", "sessions"}

// networks are the values of the column type.
var networks = []string{"residential", "mobile", "datacenter", "isp"}

var (
	errControl  = errors.New("holds a control character or is not UTF-8")
	errTooMany  = errors.New("has more columns than country, city, type, ends and sessions")
	errColumn   = errors.New("has a column of unknown name: they are country, city, type, ends and sessions")
	errCountry  = errors.New("country must be an ISO 3166-1 code such as US")
	errCity     = errors.New("city must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
	errNetwork  = errors.New("type must be residential, mobile, datacenter or isp")
	errEnds     = errors.New("ends must be a day as 2027-01-31 or a time as 2027-01-31T12:00:00Z")
	errSessions = errors.New("sessions must be 1 to 100000")
)

func isColumn(name string) bool { return slices.Contains(columnNames, strings.ToLower(name)) }

// set sets a column. Its errors do not repeat the value, which may be a part of a password
// with a space.
func (l *Line) set(name, value string) error {
	switch strings.ToLower(name) {
	case "country":
		if l.Country = strings.ToUpper(value); !country.Known(l.Country) {
			return errCountry
		}
	case "city":
		if l.City = strings.ToLower(value); !session.IsLabel(l.City) {
			return errCity
		}
	case "type":
		if l.Network = strings.ToLower(value); !slices.Contains(networks, l.Network) {
			return errNetwork
		}
	case "ends":
		day, err := time.Parse(time.DateOnly, value)
		if l.Ends = day.AddDate(0, 0, 1); err != nil { // a day is usable to its end
			l.Ends, err = time.Parse(time.RFC3339, value)
			l.Ends = l.Ends.UTC()
		}
		if err != nil {
			return errEnds
		}
	case "sessions":
		n, err := strconv.Atoi(value)
		if l.MaxSessions = n; err != nil || n < 1 || n > 100000 {
			return errSessions
		}
	default:
		return errColumn
	}
	return nil
}
