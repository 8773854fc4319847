package connect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Use is what a client shall be configured with: a session's proxy, and within it a place and workers,
// which the gateway reads from the user name.
type Use struct {
	Session string
	Proxy   Proxy
	Country string // ISO 3166-1 alpha-2; empty: the session's
	// Workers are the names of workers; none: the session's own exit, or with a country another exit
	// in it for each connection.
	Workers []string
	// Passport, if not nil, is the place that a browser shows, for one exit.
	Passport *Passport
}

// workerWord comes before the name of a worker in a user name.
const workerWord = "-session-"

// MaxWorkers is how many workers a session has at most.
const MaxWorkers = 1000

// base returns the user name with the place.
func (u Use) base() string {
	if u.Country == "" {
		return u.Proxy.Username
	}
	return u.Proxy.Username + "-country-" + strings.ToLower(u.Country)
}

// Proxies returns a proxy for each worker in their order, or the one without a worker.
func (u Use) Proxies() []Proxy {
	p := u.Proxy
	p.Username = u.base()
	if len(u.Workers) == 0 {
		return []Proxy{p}
	}
	list := make([]Proxy, len(u.Workers))
	for i, name := range u.Workers {
		list[i] = p
		list[i].Username += workerWord + name
	}
	return list
}

// The errors of a text that does not name workers.
var (
	errWorkerCount = fmt.Errorf("must be a number from 1 to %d, or names", MaxWorkers)
	errWorkerName  = errors.New("must name workers by 1 to 32 of A-Z, a-z, 0-9 and _, separated by commas")
	errWorkerTwice = errors.New("must name each worker once")
)

// ParseWorkers reads the names of workers: a number n means w1 to wn, anything else is names separated
// by commas. One name that is a number has a comma behind it.
func ParseWorkers(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if strings.Trim(text, "0123456789") == "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxWorkers {
			return nil, errWorkerCount
		}
		names := make([]string, n)
		for i := range names {
			names[i] = "w" + strconv.Itoa(i+1)
		}
		return names, nil
	}
	names := strings.Split(strings.TrimSuffix(text, ","), ",")
	if len(names) > MaxWorkers {
		return nil, errWorkerCount
	}
	for _, name := range names {
		if len(name) == 0 || len(name) > 32 || strings.Trim(name, workerLetters) != "" {
			return nil, errWorkerName
		}
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(distinct) != len(names) {
		return nil, errWorkerTwice
	}
	return names, nil
}

const workerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// WorkersText writes names so that ParseWorkers reads them as names.
func WorkersText(names []string) string {
	text := strings.Join(names, ",")
	if len(names) == 1 {
		text += ","
	}
	return text
}
