package storage

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the series of the database. Their labels are words of the program.
type metrics struct {
	retries *prometheus.CounterVec
	units   *prometheus.CounterVec
	batches prometheus.Counter
	reads   *prometheus.CounterVec
	// Of reads: what a view is run with. A look at the labels of each took a hundredth of a read.
	memory, shared, alone prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_database_retries_total",
			Help: "Units that were run again, by reason."}, []string{"reason"}),
		units: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_database_units_total",
			Help: "Units that waited for group commit, by how they ended: shared, or alone in a transaction of their own."},
			[]string{"in"}),
		batches: prometheus.NewCounter(prometheus.CounterOpts{Name: "agentproxy_database_batches_total",
			Help: "Transactions of group commit."}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_database_reads_total",
			Help: "Views that named what they read: from memory, shared a round trip with those that waited, or alone."},
			[]string{"in"}),
	}
	m.memory = m.reads.WithLabelValues("memory")
	m.shared = m.reads.WithLabelValues("shared") // what was read for several
	m.alone = m.reads.WithLabelValues("alone")   // its own statements
	return m
}

var _ prometheus.Collector = (*Store)(nil)

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("agentproxy_database_"+name, help, nil, nil)
}

var (
	descUsed   = desc("pool_used", "Connections to PostgreSQL that are in use.")
	descOpen   = desc("pool_open", "Connections to PostgreSQL that are open.")
	descLimit  = desc("pool_limit", "Connections to PostgreSQL that may be open.")
	descWaits  = desc("pool_waits_total", "Times that a unit waited for a connection.")
	descWaited = desc("pool_wait_seconds_total", "For how long units waited for a connection.")
	descLosses = desc("pool_losses_total", "Times that the connections to PostgreSQL were replaced because one was lost.")

	descPromotions = desc("promotions_total", "Times that another PostgreSQL server than before was found promoted.")
	descLossy      = desc("lossy_promotions_total",
		"Times that a PostgreSQL server that was promoted lacked commits that this process had been answered.")
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	s.metrics.retries.Describe(ch)
	s.metrics.units.Describe(ch)
	s.metrics.batches.Describe(ch)
	s.metrics.reads.Describe(ch)
	for _, d := range []*prometheus.Desc{descUsed, descOpen, descLimit, descWaits, descWaited, descLosses,
		descPromotions, descLossy} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. The series of the pool are PostgreSQL's.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.metrics.retries.Collect(ch)
	s.metrics.units.Collect(ch)
	s.metrics.batches.Collect(ch)
	s.metrics.reads.Collect(ch)
	pool := s.Pool()
	if pool == nil {
		return
	}
	stat := pool.Stat()
	waits, waited := s.postgres.Waits()
	ch <- prometheus.MustNewConstMetric(descUsed, prometheus.GaugeValue, float64(stat.AcquiredConns()))
	ch <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(stat.TotalConns()))
	ch <- prometheus.MustNewConstMetric(descLimit, prometheus.GaugeValue, float64(stat.MaxConns()))
	ch <- prometheus.MustNewConstMetric(descWaits, prometheus.CounterValue, float64(stat.EmptyAcquireCount()+waits))
	waited += stat.EmptyAcquireWaitTime()
	ch <- prometheus.MustNewConstMetric(descWaited, prometheus.CounterValue, waited.Seconds())
	ch <- prometheus.MustNewConstMetric(descLosses, prometheus.CounterValue, float64(s.postgres.Losses()))
	ch <- prometheus.MustNewConstMetric(descPromotions, prometheus.CounterValue, float64(s.postgres.Promotions()))
	ch <- prometheus.MustNewConstMetric(descLossy, prometheus.CounterValue, float64(s.postgres.LossyPromotions()))
}

// LockWaits counts the connections to the database that wait for a lock; 0 on SQLite.
func (s *Store) LockWaits(ctx context.Context) (float64, error) {
	pool := s.Pool()
	if pool == nil {
		return 0, nil
	}
	var n float64
	err := pool.QueryRow(ctx, `SELECT COUNT(*)::float8 FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	return n, s.database.Classify(ctx, err)
}
