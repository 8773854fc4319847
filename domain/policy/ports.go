package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// portRange is the ports from first to last.
type portRange struct{ first, last uint16 }

// String writes the range as a rule.
func (r portRange) String() string {
	if r.first == r.last {
		return strconv.Itoa(int(r.first))
	}
	return fmt.Sprintf("%d-%d", r.first, r.last)
}

// ports is a list of ranges. After sort they neither overlap nor touch.
type ports []portRange

// rangeOf returns the index of the range that has a port, or -1.
func (ps ports) rangeOf(port uint16) int {
	i, found := slices.BinarySearchFunc(ps, port, func(r portRange, port uint16) int {
		switch {
		case port < r.first:
			return 1
		case port > r.last:
			return -1
		}
		return 0
	})
	if !found {
		return -1
	}
	return i
}

// sort orders the ranges and joins those that overlap or touch.
func (ps *ports) sort() {
	slices.SortFunc(*ps, func(a, b portRange) int { return cmp.Compare(a.first, b.first) })
	joined := (*ps)[:0]
	for _, r := range *ps {
		if n := len(joined); n > 0 && int(r.first) <= int(joined[n-1].last)+1 {
			joined[n-1].last = max(joined[n-1].last, r.last)
			continue
		}
		joined = append(joined, r)
	}
	*ps = joined
}

// parsePorts reads a port or a range. ok is false for what is neither.
func parsePorts(text string) (r portRange, ok bool, err error) {
	first, last, isRange := strings.Cut(text, "-")
	if !digits(first) || isRange && !digits(last) {
		return r, false, nil
	}
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(last, 10, 16)
	if errA != nil || errB != nil || a == 0 || a > b {
		return r, false, fmt.Errorf("%s is not a port; a port is 1 to 65535, a range begins with the lower one", quote(text))
	}
	return portRange{uint16(a), uint16(b)}, true, nil
}

// digits reports whether text is a number.
func digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
