package work

import (
	"strconv"
	"strings"
)

// Placeholders returns "?first, ?first+1 ..." for n parameters.
func Placeholders(first, n int) string {
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

// In returns "(?first, ?first+1 ...)" with room for n values, and how many it has: a
// few sizes only, so that the statements stay prepared.
func In(first, n int) (list string, size int) {
	size = 1
	for size < n {
		size *= 2
	}
	return "(" + Placeholders(first, size) + ")", size
}

// InTexts is like In for texts, at least one, with the arguments from ?1 on.
func InTexts(texts []string) (list string, args []any) {
	list, size := In(1, len(texts))
	args = make([]any, size)
	for i := range args {
		args[i] = texts[min(i, len(texts)-1)]
	}
	return list, args
}

// MaxIn bounds the parameters of one query.
const MaxIn = 512
