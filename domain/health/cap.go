package health

// capSeconds is how many whole seconds a sliding minute can touch.
const capSeconds = 61

// reportCap bounds the scored reports of a session: never more than
// reportsPerMinute in any 60 seconds, wherever they begin. It counts by whole
// seconds, so a report stops counting 60 to 61 seconds after it came.
type reportCap struct {
	head  int64             // the newest second, Unix time
	count [capSeconds]uint8 // of second s at s modulo capSeconds
	sum   uint8
}

// countReport counts one report at a moment; false when the minute is full.
func (c *reportCap) countReport(at micros) bool {
	c.advance(int64(at / second))
	if c.sum >= reportsPerMinute {
		return false
	}
	c.count[c.head%capSeconds]++
	c.sum++
	return true
}

// advance forgets the seconds that left the minute. A moment before the head
// counts as the head.
func (c *reportCap) advance(to int64) {
	if to-c.head >= capSeconds {
		*c = reportCap{head: to}
		return
	}
	for c.head < to {
		c.head++
		slot := &c.count[c.head%capSeconds]
		c.sum -= *slot
		*slot = 0
	}
}

// at returns the count of the second that is age seconds before the head.
func (c *reportCap) at(age int64) *uint8 {
	return &c.count[(c.head-age+capSeconds)%capSeconds]
}
