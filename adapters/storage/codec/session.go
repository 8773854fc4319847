package codec

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// JoinLabels writes labels in the order of their keys, so that one is found as a line. Neither keys
// nor values have line breaks.
func JoinLabels(l session.Labels) string {
	if len(l) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, key := range slices.Sorted(maps.Keys(l)) {
		b.WriteString(LabelText(key, l[key]))
	}
	return b.String()
}

// LabelText returns a label as JoinLabels writes it.
func LabelText(key, value string) string { return key + ":" + value + "\n" }

// SplitLabels reads what JoinLabels wrote.
func SplitLabels(text string) session.Labels {
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

// JoinNetworks writes networks with a space between.
func JoinNetworks(networks []netip.Prefix) string {
	var b []byte
	for i, n := range networks {
		if i > 0 {
			b = append(b, ' ')
		}
		b = n.AppendTo(b)
	}
	return string(b)
}

// SplitNetworks reads what JoinNetworks wrote.
func SplitNetworks(text string) (networks []netip.Prefix, err error) {
	for part := range strings.FieldsSeq(text) {
		n, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	return networks, nil
}

// noAddress is an exit whose address is unknown, as that of an upstream proxy may be.
const noAddress = "-"

// JoinExits writes the addresses of exits.
func JoinExits(exits []session.Exit) string {
	if len(exits) == 1 && exits[0].IP.IsValid() {
		return exits[0].IP.String()
	}
	var b []byte
	for i, exit := range exits {
		if i > 0 {
			b = append(b, ',')
		}
		if !exit.IP.IsValid() {
			b = append(b, noAddress...)
		}
		b = exit.IP.AppendTo(b)
	}
	return string(b)
}

// SplitExits reads what JoinExits wrote.
func SplitExits(text string) ([]session.Exit, error) {
	if text == "" {
		return nil, nil
	}
	exits := make([]session.Exit, 0, strings.Count(text, ",")+1)
	for part := range strings.SplitSeq(text, ",") {
		if part == noAddress {
			exits = append(exits, session.Exit{})
			continue
		}
		ip, err := netip.ParseAddr(part)
		if err != nil {
			return nil, err
		}
		exits = append(exits, session.Exit{IP: ip})
	}
	return exits, nil
}

// JoinEnded writes the places of the exits that ended.
func JoinEnded(exits []session.Exit) string {
	var b []byte
	for i, e := range exits {
		if !e.Ended {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(i), 10)
	}
	return string(b)
}

// MarkEnded marks the exits at places that JoinEnded wrote.
func MarkEnded(exits []session.Exit, places string) error {
	if places == "" {
		return nil
	}
	for place := range strings.SplitSeq(places, ",") {
		i, err := strconv.Atoi(place)
		if err != nil || i < 0 || i >= len(exits) {
			return fmt.Errorf("there is no exit %q", place)
		}
		exits[i].Ended = true
	}
	return nil
}

// topUpsText is how the additions to a session are stored. Most sessions have none.
type topUpsText struct {
	Runs      []runText  `json:"runs,omitempty"`
	No        int        `json:"no,omitempty"`
	Day       int64      `json:"day,omitempty"`
	Held      int64      `json:"held,omitempty"`
	Auto      *autoTopUp `json:"auto,omitempty"`
	AutoDay   int64      `json:"auto_day,omitempty"`
	AutoCount int        `json:"auto_count,omitempty"`
	Failed    string     `json:"failed,omitempty"`
	FailedAt  int64      `json:"failed_at,omitempty"`
}

type runText struct {
	Bytes int64 `json:"bytes"`
	Price int64 `json:"price"`
}

type autoTopUp struct {
	Below  int   `json:"below"`
	Bytes  int64 `json:"bytes"`
	PerDay int   `json:"per_day"`
	Price  int64 `json:"price,omitempty"`
}

// JoinTopUps writes the additions to a session as JSON, none as nothing.
func JoinTopUps(t session.TopUps) string {
	if t.No == 0 && t.Auto == (session.AutoTopUp{}) {
		return ""
	}
	text := topUpsText{No: t.No, Day: column.Micros(t.Day), Held: int64(t.Held), AutoDay: column.Micros(t.AutoDay),
		AutoCount: t.AutoCount, Failed: t.Failed, FailedAt: column.Micros(t.FailedAt)}
	for _, r := range t.Runs {
		text.Runs = append(text.Runs, runText{r.Bytes, int64(r.Price)})
	}
	if t.Auto != (session.AutoTopUp{}) {
		text.Auto = &autoTopUp{t.Auto.BelowPercent, t.Auto.Bytes, t.Auto.MaxPerDay, int64(t.Auto.MaxPrice)}
	}
	b, _ := json.Marshal(text) // of numbers and a code, which cannot fail
	return string(b)
}

// SplitTopUps reads what JoinTopUps wrote.
func SplitTopUps(stored string) (t session.TopUps, err error) {
	if stored == "" {
		return t, nil
	}
	var text topUpsText
	if err := json.Unmarshal([]byte(stored), &text); err != nil {
		return t, err
	}
	t = session.TopUps{No: text.No, Day: column.Time(text.Day), Held: domain.Money(text.Held),
		AutoDay: column.Time(text.AutoDay), AutoCount: text.AutoCount, Failed: text.Failed,
		FailedAt: column.Time(text.FailedAt)}
	for _, r := range text.Runs {
		t.Runs = append(t.Runs, session.Run{Bytes: r.Bytes, Price: domain.Money(r.Price)})
	}
	if text.Auto != nil {
		t.Auto = session.AutoTopUp{BelowPercent: text.Auto.Below, Bytes: text.Auto.Bytes, MaxPerDay: text.Auto.PerDay,
			MaxPrice: domain.Money(text.Auto.Price)}
	}
	return t, nil
}
