package sessions

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"agentproxy/domain/session"
)

// joinLabels writes labels in the order of their keys, so that one is found as a line. Neither keys
// nor values have line breaks.
func joinLabels(l session.Labels) string {
	if len(l) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, key := range slices.Sorted(maps.Keys(l)) {
		b.WriteString(labelText(key, l[key]))
	}
	return b.String()
}

func labelText(key, value string) string { return key + ":" + value + "\n" }

func splitLabels(text string) session.Labels {
	if text == "" {
		return nil
	}
	l := session.Labels{}
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		key, value, _ := strings.Cut(line, ":")
		l[key] = value
	}
	return l
}

func joinNetworks(networks []netip.Prefix) string {
	var b []byte
	for i, n := range networks {
		if i > 0 {
			b = append(b, ' ')
		}
		b = n.AppendTo(b)
	}
	return string(b)
}

func splitNetworks(text string) (networks []netip.Prefix, err error) {
	for part := range strings.FieldsSeq(text) {
		n, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	return networks, nil
}
