package storage

import (
	"strconv"
	"strings"
	"time"
)

// micros returns how a time is stored: 0 is the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// flag returns how a boolean is stored.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// placeholders returns "?first, ?first+1 ..." for n parameters.
func placeholders(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('?')
		b.WriteString(strconv.Itoa(first + i))
	}
	return b.String()
}

// in returns "(?first, ?first+1 ...)" with room for n values, and how many it has: a
// few sizes only, so that the statements stay prepared.
func in(first, n int) (list string, size int) {
	size = 1
	for size < n {
		size *= 2
	}
	return "(" + placeholders(first, size) + ")", size
}

// inTexts is like in for texts, at least one, with the arguments from ?1 on.
func inTexts(texts []string) (list string, args []any) {
	list, size := in(1, len(texts))
	args = make([]any, size)
	for i := range args {
		args[i] = texts[min(i, len(texts)-1)]
	}
	return list, args
}

// bytesOf keeps no bytes at all from becoming NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
