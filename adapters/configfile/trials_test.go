package configfile_test

import (
	"fmt"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

func TestBoundsOfTheTrial(t *testing.T) {
	for _, c := range []struct {
		claim   string
		env     map[string]string
		total   domain.Money
		network int
		fault   string
	}{
		{"the defaults of development mode", nil, 1000 * domain.Dollar, 0, ""},
		{"the defaults outside it", map[string]string{"AGENTPROXY_DEV": "false"}, 1000 * domain.Dollar, 5, ""},
		{"what is set", map[string]string{"AGENTPROXY_TRIAL_DAILY_TOTAL": "20.5", "AGENTPROXY_TRIAL_PER_NETWORK": "2"}, 20_500_000, 2, ""},
		{"unlimited", map[string]string{"AGENTPROXY_DEV": "false", "AGENTPROXY_TRIAL_DAILY_TOTAL": "0", "AGENTPROXY_TRIAL_PER_NETWORK": "0"}, 0, 0, ""},
		{"a trial balance up to the default", map[string]string{"AGENTPROXY_TRIAL_BALANCE": "1000"}, 1000 * domain.Dollar, 0, ""},
		{"one above it", map[string]string{"AGENTPROXY_TRIAL_BALANCE": "1000.01"}, 100_001 * domain.Dollar, 0, ""},
		{"one above what is set", map[string]string{"AGENTPROXY_TRIAL_DAILY_TOTAL": "9.99"}, 0, 0, "AGENTPROXY_TRIAL_DAILY_TOTAL: must be at least the trial balance of 10 USD"},
		{"a total that is none", map[string]string{"AGENTPROXY_TRIAL_DAILY_TOTAL": "-1"}, 0, 0, "AGENTPROXY_TRIAL_DAILY_TOTAL: must be an amount"},
		{"a number that is none", map[string]string{"AGENTPROXY_TRIAL_PER_NETWORK": "-1"}, 0, 0, "AGENTPROXY_TRIAL_PER_NETWORK: must be 0 or more"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			clean(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			s, err := configfile.Load(rules())
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(c.fault, " USD")) {
					t.Errorf("got %v, want %s", err, c.fault)
				}
				return
			}
			if err != nil || s.TrialDailyTotal != c.total || s.TrialPerNetwork != c.network {
				t.Errorf("got %s and %d, %v", s.TrialDailyTotal, s.TrialPerNetwork, err)
			}
		})
	}
}

func TestFromWhereAnAccountIsFunded(t *testing.T) {
	for text, want := range map[string]account.Funding{"": account.Funding(domain.Dollar), "0": 0, "2.5": 2_500_000, "-1": -1,
		"a lot": -1} {
		clean(t)
		if text != "" {
			t.Setenv("AGENTPROXY_FUNDED_FROM", text)
		}
		s, err := configfile.Load(rules())
		if err == nil && s.FundedFrom != want || (err == nil) != (want >= 0) ||
			err != nil && !strings.Contains(err.Error(), "AGENTPROXY_FUNDED_FROM: must be an amount") {
			t.Errorf("%q: %d, %v", text, s.FundedFrom, err)
		}
	}
}

func TestWayOfRegistration(t *testing.T) {
	for text, want := range map[string]account.Registration{"": account.OpenRegistration, "open": account.OpenRegistration,
		"referral": account.ReferralRegistration, "closed": account.ClosedRegistration, "invite": ""} {
		clean(t)
		if text != "" {
			t.Setenv("AGENTPROXY_REGISTRATION", text)
		}
		s, err := configfile.Load(rules())
		if (err == nil) != (want != "") || err == nil && (s.Registration != want || s.ClientAddressDays != 90) {
			t.Errorf("%q: %s, %d days, %v", text, s.Registration, s.ClientAddressDays, err)
		}
	}
}

// The limits of an account are off in development mode, where all connections are the operator's own.
func TestLimitsOfAnAccount(t *testing.T) {
	type limits struct {
		connections, trialConnections, starts, trialStarts, targets, trialTargets, rate, trialRate, registrations, stored, trialStored int
	}
	for dev, want := range map[string]limits{"true": {},
		"false": {1000, 100, 100, 10, 2000, 120, 600, 60, 120, 1_000_000_000, 50_000_000}} {
		clean(t)
		t.Setenv("AGENTPROXY_DEV", dev)
		s, err := configfile.Load(rules())
		if got := (limits{s.AgentConnections, s.TrialConnections, s.ConnectionRate, s.TrialConnectionRate, s.Targets,
			s.TrialTargets, s.TargetRate, s.TrialTargetRate, s.RegisterLimit,
			s.StoredPerDay, s.TrialStoredPerDay}); err != nil || got != want {
			t.Errorf("development mode %s: %+v, %v; want %+v", dev, got, err, want)
		}
	}
	for days, want := range map[string]int{"": 90, "0": 0, "7": 7} {
		clean(t)
		if days != "" {
			t.Setenv("AGENTPROXY_EXIT_LOG_DAYS", days)
			t.Setenv("AGENTPROXY_ARCHIVE_DAYS", days)
		}
		if s, err := configfile.Load(rules()); err != nil || s.ExitLogDays != want || s.ArchiveDays != want {
			t.Errorf("%q days are read as %d of the exit log and %d to the archive, %v", days, s.ExitLogDays, s.ArchiveDays, err)
		}
	}
	clean(t)
	t.Setenv("AGENTPROXY_DEV", "false")
	t.Setenv("AGENTPROXY_TARGET_RATE_PER_MINUTE", "0")
	t.Setenv("AGENTPROXY_TARGET_RATE_PER_MINUTE_TRIAL", "7")
	t.Setenv("AGENTPROXY_CONNECTIONS_PER_SECOND", "3")
	t.Setenv("AGENTPROXY_CONNECTIONS_PER_SECOND_TRIAL", "0")
	t.Setenv("AGENTPROXY_TARGETS_PER_MINUTE", "5")
	t.Setenv("AGENTPROXY_TARGETS_PER_MINUTE_TRIAL", "4")
	if s, err := configfile.Load(rules()); err != nil || s.TargetRate != 0 || s.TrialTargetRate != 7 || s.ConnectionRate != 3 ||
		s.TrialConnectionRate != 0 || s.Targets != 5 || s.TrialTargets != 4 {
		t.Errorf("what is set is read as %+v, %v", s, err)
	}
}

// How much PostgreSQL may take is declared; of SQLite it is read.
func TestCapacityOfTheDatabase(t *testing.T) {
	for _, c := range []struct {
		url, capacity string
		want          int64
		fault         bool
	}{
		{"postgres://u@db/a", "", 0, false},
		{"postgres://u@db/a", "90000", 90_000_000_000, false},
		{"postgres://u@db/a", "-1", 0, true},
		{"sqlite://ap.db", "90000", 0, true},
		{"sqlite://ap.db", "0", 0, false},
	} {
		clean(t)
		t.Setenv("AGENTPROXY_DATABASE_URL", c.url)
		t.Setenv("AGENTPROXY_SECRET", "0123456789abcdef0123456789abcdef")
		if c.capacity != "" {
			t.Setenv("AGENTPROXY_DATABASE_CAPACITY_MB", c.capacity)
		}
		s, err := configfile.Load(rules())
		if (err != nil) != c.fault || err == nil && s.DatabaseCapacity != c.want {
			t.Errorf("%+v: %d, %v", c, s.DatabaseCapacity, err)
		}
	}
}

// A provider shows that the service sells to others.
func TestAProviderEndsDevelopmentMode(t *testing.T) {
	write(t, dynamicProduct)
	if s := load(t); s.Dev {
		t.Error("the service is in development mode")
	}
}

// Accounts on trial reach the ports of the web alone, and every port in development mode.
func TestPortsOfTheTrial(t *testing.T) {
	web := []uint16{80, 443, 8080, 8443}
	for _, c := range []struct {
		dev, ports string
		open, shut []uint16
		fault      string
	}{
		{"false", "", web, []uint16{81, 2525, 6379}, ""},
		{"true", "", append(web, 81, 2525), nil, ""},
		{"false", "all", append(web, 81, 2525), nil, ""},
		{"true", "443, 9000-9002", []uint16{443, 9000, 9002}, []uint16{80, 9003}, ""},
		{"false", "443,0", nil, nil, `AGENTPROXY_TRIAL_PORTS: "0" is not a port`},
		{"false", "443,all", nil, nil, `AGENTPROXY_TRIAL_PORTS: "all" is not a port`},
		{"false", "9-8", nil, nil, `AGENTPROXY_TRIAL_PORTS: "9-8" is not a port`},
	} {
		clean(t)
		t.Setenv("AGENTPROXY_DEV", c.dev)
		if c.ports != "" {
			t.Setenv("AGENTPROXY_TRIAL_PORTS", c.ports)
		}
		s, err := configfile.Load(rules())
		if got := fmt.Sprint(err); c.fault != "" && !strings.Contains(got, c.fault) || c.fault == "" && err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		layers := s.Catalog.Policy.Layers("any", nil, false)
		for _, port := range c.open {
			if d := layers.OnTrial(s.Catalog.Policy).Name("example.com", port); d.Refuses() {
				t.Errorf("%+v: port %d is denied", c, port)
			}
		}
		for _, port := range c.shut {
			if d := layers.OnTrial(s.Catalog.Policy).Name("example.com", port); d.Layer != "trial" || d.Part != "port" {
				t.Errorf("%+v: port %d: %+v", c, port, d)
			}
			if d := layers.Name("example.com", port); d.Layer == "trial" {
				t.Errorf("%+v: port %d is denied to others", c, port)
			}
		}
	}
	write(t, "trial_ports: [443, 8000-8010]\ndev: false\n")
	s := load(t)
	if d := s.Catalog.Policy.Layers("any", nil, false).OnTrial(s.Catalog.Policy).Name("example.com", 80); d.Layer != "trial" ||
		d.Rule != "443, 8000-8010" {
		t.Errorf("the file's ports: %+v", d)
	}
}
