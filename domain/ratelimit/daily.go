package ratelimit

import "time"

// Daily is the largest amount of a UTC day, such as bytes; zero and negative ones are unlimited.
// Processes share it in parts, as the tokens of a State that belongs to one day.
type Daily int64

// dailyParts is the number of parts of a Daily. The first one each process uses without a question, so
// that parties of little use cost none; the state has the others.
const dailyParts = 16

// dailyInterval is the interval of one part: long, so that no more than two parts are free again by the
// end of the day.
const dailyInterval = 12 * time.Hour

// Part returns the amount of one part.
func (d Daily) Part() int64 { return max((int64(d)+dailyParts-1)/dailyParts, 1) }

// NewRequest returns a request for the parts that an amount needs.
func (d Daily) NewRequest(amount int64) Request {
	parts := (max(amount, 1) + d.Part() - 1) / d.Part()
	return Request{Interval: dailyInterval, Burst: (dailyParts - 1) * dailyInterval,
		Tokens: int(min(parts, dailyParts-1))}
}

// Day returns the number of the UTC day of a time, and how long the day lasts from then on, in whole seconds.
func Day(now time.Time) (day int64, left time.Duration) {
	const length = 24 * time.Hour
	day = now.Unix() / int64(length/time.Second)
	return day, wholeSeconds(time.Unix((day+1)*int64(length/time.Second), 0).Sub(now))
}
