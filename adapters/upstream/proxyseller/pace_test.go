package proxyseller

import (
	"log/slog"

	"agentproxy/adapters/upstream/kind"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// recorder answers every request at once and records its start.
type recorder struct {
	mu sync.Mutex
	at map[string][]time.Time // by "spend", "write" and "read"
}

func (b *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := "read"
	switch {
	case strings.HasSuffix(r.URL.Path, "/order/make"):
		kind = "spend"
	case strings.Contains(r.URL.Path, "/autoprolong/"):
		kind = "write"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at[kind] = append(b.at[kind], time.Now())
	body := `{"status":"success","data":{"orderId":"a","total":2,"listBaseOrderNumbers":["7_7"],"summ":1},"errors":[]}`
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
}

// gap returns the shortest time between two of them.
func gap(times []time.Time) time.Duration {
	least := time.Hour
	for i, t := range times {
		for _, u := range times[:i] {
			least = min(least, t.Sub(u).Abs())
		}
	}
	return least
}

func TestKeepsThePaceOfTheOfficialClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, err := New(Config{Common: kind.Common{Name: "ps", Log: slog.New(slog.DiscardHandler)}, Key: "k", Purpose: "x"})
		if err != nil {
			t.Fatal(err)
		}
		p := made.(*addressProvider)
		seen := &recorder{at: map[string][]time.Time{}}
		p.reads.HTTP.Transport = seen
		in := procurement.Intent{Key: "ord_1", Type: session.Static, Quantity: 1, Days: 30, Location: session.Location{Country: "US"}}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := p.Order(t.Context(), in); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := p.disableAutoRenewal(t.Context(), []address{{ID: "a"}}); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := p.Balance(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(seen.at["spend"]); n != 4 || gap(seen.at["spend"]) < 2*time.Second {
			t.Errorf("%d purchases are %v apart, want 2s", n, gap(seen.at["spend"]))
		}
		if all := append(seen.at["write"], seen.at["spend"]...); len(all) != 8 || gap(all) < time.Second {
			t.Errorf("%d writes are %v apart, want 1s", len(all), gap(all))
		}
		if n := len(seen.at["read"]); n != 4 || gap(seen.at["read"]) < time.Second || gap(seen.at["read"]) > 2*time.Second {
			t.Errorf("%d reads are %v apart, want 1s", n, gap(seen.at["read"]))
		}
	})
}

func TestGivesUpItsTurnUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, err := New(Config{Common: kind.Common{Name: "ps", Log: slog.New(slog.DiscardHandler)}, Key: "k", Purpose: "x"})
		if err != nil {
			t.Fatal(err)
		}
		p := made.(*addressProvider)
		seen := &recorder{at: map[string][]time.Time{}}
		p.reads.HTTP.Transport = seen
		in := procurement.Intent{Key: "ord_1", Type: session.Static, Quantity: 1, Days: 30, Location: session.Location{Country: "US"}}
		var wg sync.WaitGroup
		var mu sync.Mutex
		classes := map[procurement.Class]int{}
		for range 30 { // one every two seconds, for at most twenty
			wg.Go(func() {
				began := time.Now()
				_, err := p.Order(t.Context(), in)
				mu.Lock()
				defer mu.Unlock()
				classes[procurement.ClassOf(err)]++
				if took := time.Since(began); err != nil && took > 0 {
					t.Errorf("it took %v to refuse for want of a turn", took)
				}
			})
		}
		wg.Wait()
		if classes[""] != len(seen.at["spend"]) || classes[""] < 10 || classes[procurement.Temporary] != 30-classes[""] {
			t.Errorf("30 orders ended as %v, %d were sent", classes, len(seen.at["spend"]))
		}
	})
}
