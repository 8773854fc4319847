package health

import "math/bits"

// latencies is a histogram of latencies in milliseconds. Up to 31 ms each has a
// bucket of its own; above, every power of two is cut in 16, so a percentile is
// off by at most 3.2 percent. A bucket's 2^32 is out of a session's reach.
type latencies struct {
	sum      uint64
	min, max uint32 // 0 while empty
	buckets  [latencyBuckets]uint32
}

const (
	latencyExact   = 32  // latencies below have a bucket each
	latencyCuts    = 16  // buckets for each power of two above
	latencyBuckets = 259 // the bucket of MaxLatencyMS is the last
)

// bucketOf returns the bucket of a latency up to MaxLatencyMS.
func bucketOf(ms uint32) int {
	if ms < latencyExact {
		return int(ms)
	}
	shift := bits.Len32(ms) - 5 // leaves 16 to 31
	return latencyExact + (shift-1)*latencyCuts + int(ms>>shift) - latencyCuts
}

// middleOf returns the latency in the middle of a bucket.
func middleOf(bucket int) uint32 {
	if bucket < latencyExact {
		return uint32(bucket)
	}
	shift := (bucket-latencyExact)/latencyCuts + 1
	low := uint32((bucket-latencyExact)%latencyCuts+latencyCuts) << shift
	return low + 1<<(shift-1)
}

func (l *latencies) add(ms int) {
	v := uint32(min(max(ms, 0), MaxLatencyMS))
	if l.empty() || v < l.min {
		l.min = v
	}
	l.max = max(l.max, v)
	l.sum += uint64(v)
	l.buckets[bucketOf(v)]++
}

func (l *latencies) empty() bool { return l.buckets[bucketOf(l.max)] == 0 }

// merge adds what other counted.
func (l *latencies) merge(other *latencies) {
	if other.empty() {
		return
	}
	if l.empty() || other.min < l.min {
		l.min = other.min
	}
	l.max = max(l.max, other.max)
	l.sum += other.sum
	for i, n := range other.buckets {
		l.buckets[i] += n
	}
}

func (l *latencies) count() uint64 {
	var n uint64
	for _, in := range l.buckets {
		n += uint64(in)
	}
	return n
}

// mean returns the average in milliseconds; 0 while empty.
func (l *latencies) mean() float64 {
	if l.empty() {
		return 0
	}
	return float64(l.sum) / float64(l.count())
}

// p95 returns the 95th percentile by nearest rank, in milliseconds; 0 while empty.
// Below 20 latencies that is the largest, and exact.
func (l *latencies) p95() int {
	n := l.count()
	rank := (n*19 + 19) / 20
	if rank == n {
		return int(l.max)
	}
	for i, in := range l.buckets {
		if rank <= uint64(in) {
			return int(min(max(middleOf(i), l.min), l.max))
		}
		rank -= uint64(in)
	}
	return int(l.max)
}
