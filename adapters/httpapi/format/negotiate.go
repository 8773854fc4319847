package format

import (
	"mime"
	"slices"
	"strconv"
	"strings"
)

// Negotiate returns the media type of an answer: that of the named ones with the highest quality in an
// Accept header (RFC 9110 section 12.5.1), the first of equal ones. The usual one is answered where a
// wildcard alone fits as well, or nothing does: clients that do not care send wildcards.
func Negotiate(accept, usual string, offers ...string) string {
	best, most, wild, named := usual, 0.0, 0.0, false
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		switch {
		case strings.HasSuffix(kind, "/*"):
			wild = max(wild, q)
		case (kind == usual || slices.Contains(offers, kind)) && q > most:
			best, most = kind, q
			named = named || kind == usual
		}
	}
	if !named && wild > most {
		return usual
	}
	return best
}
