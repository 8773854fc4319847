package wire

import (
	"context"
	"sync"
	"time"

	"agentproxy/adapters/admin"
	"agentproxy/app/operator"
	"agentproxy/domain/exit"
	"agentproxy/ports"
)

// exitsEvery is how often the exits are counted for the gauges: that reads what was measured of each.
const exitsEvery = time.Minute

// exitCounts counts the exits that agents use, for all gauges at once.
type exitCounts struct {
	sessions *operator.Sessions
	clock    ports.Clock

	mu   sync.Mutex
	at   time.Time
	last []exit.Quality
}

func (c *exitCounts) read(ctx context.Context) ([]exit.Quality, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if !c.at.IsZero() && now.Sub(c.at).Abs() < exitsEvery {
		return c.last, nil
	}
	list, err := c.sessions.Exits(ctx)
	if err == nil {
		c.at, c.last = now, list
	}
	return list, err
}

// exitGauges returns the gauges of what exits are.
func exitGauges(sessions *operator.Sessions, clock ports.Clock) []admin.Gauge {
	counts := &exitCounts{sessions: sessions, clock: clock}
	of := func(count func(exit.Quality) int) func(context.Context) (map[admin.Place]float64, error) {
		return func(ctx context.Context) (map[admin.Place]float64, error) {
			list, err := counts.read(ctx)
			values := make(map[admin.Place]float64, len(list))
			for _, q := range list {
				values[admin.Place{Provider: q.Source, Country: q.Declared}] = float64(count(q))
			}
			return values, err
		}
	}
	return []admin.Gauge{
		{Name: "agentproxy_exits", Help: "Exits that agents use which were measured or are to be, by source and country " +
			"as sold.", ByPlace: of(func(q exit.Quality) int { return q.Exits })},
		{Name: "agentproxy_exits_measured", Help: "Those of them whose address the echo reported.",
			ByPlace: of(func(q exit.Quality) int { return q.Measured })},
		{Name: "agentproxy_exits_differing", Help: "Those of them that were at least once in another place than the one " +
			"sold.",
			ByPlace: of(func(q exit.Quality) int { return q.Differing })},
		{Name: "agentproxy_exits_listed", Help: "Those of them that are on a list.",
			ByPlace: of(func(q exit.Quality) int { return q.Listed })},
		{Name: "agentproxy_exits_given_back", Help: "Addresses that agents gave back ever, for another one or for a refund.",
			ByPlace: of(func(q exit.Quality) int { return q.Replaced + q.Ended })},
	}
}
