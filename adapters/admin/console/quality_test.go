package console_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
)

// The page of the quality of exits counts them by source and country as sold, and in all.
func TestTheQualityOfExits(t *testing.T) {
	t.Parallel()
	w := open(t)
	agent := w.RegisterFunded(50)
	own, seller := w.Buy(agent, Static), w.Buy(agent, RemoteStatic)
	put := func(id string, index int, told bool, listed ...string) {
		t.Helper()
		OK(t, w.Store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return tx.ExitMeasures().Put(ctx, exit.Record{Ref: exit.Ref{AgentID: agent, SessionID: id, Index: index}, Of: "0.0", Told: told,
				Measured: exit.Measured{IP: netip.MustParseAddr("192.0.2.1"), At: w.Clock.Now(), Declared: "DE", Known: exit.Known{Listed: listed}}})
		}))
	}
	back := func(id, country string, status replacement.Status, fee, refund domain.Money) {
		t.Helper()
		OK(t, w.Store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return tx.Replacements().Put(ctx, replacement.Replacement{ID: id, AgentID: agent, SessionID: own.ID, Provider: "embedded", Country: country,
				Old: netip.MustParseAddr("192.0.2.9"), New: netip.MustParseAddr("192.0.2.8"), Fault: procurement.WrongPlace, Ground: replacement.Offered, Status: status,
				Fee: fee, Refund: refund, At: w.Clock.Now(), DecidedAt: w.Clock.Now()})
		}))
	}
	t.Cleanup(func() { w.Exec("DELETE FROM replacements") }) // no money moved with them, which the audit would find
	back("rep_1", "DE", replacement.Done, domain.Dollar, 0)
	back("rep_2", "DE", replacement.Ended, 0, 2*domain.Dollar)
	back("rep_3", "FR", replacement.Done, 0, 0)
	put(own.ID, 0, false)
	put(seller.ID, 0, true, "list")
	put(seller.ID, 1, true)
	code, body := w.get("/exits/quality")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	for row, want := range map[string]string{"quality-embedded-DE": "embedded DE 1 1 0 0 TIME 1 1 $1.00 $2.00",
		"quality-embedded-FR": "embedded FR 0 0 0 0 – 1 0 $0.00 $0.00", "quality-remote-DE": "remote DE 2 2 2 1 TIME 0 0 $0.00 $0.00"} {
		_, after, _ := strings.Cut(body, `id="`+row+`"`)
		cells, _, _ := strings.Cut(after, "</tr>")
		if got := plainText(cells); got != strings.ReplaceAll(want, "TIME", w.Clock.Now().Format("2006-01-02 15:04:05")+" UTC") {
			t.Errorf("%s: %q", row, got)
		}
	}
	for id, want := range map[string]string{"exits": "3", "measured": "3", "differing": "2", "listed": "1", "replaced": "2", "ended": "1", "fees": "$1.00", "refunds": "$2.00"} {
		_, after, _ := strings.Cut(body, `id="`+id+`"`)
		if figure, _, _ := strings.Cut(after, "</"); !strings.HasSuffix(figure, want) {
			t.Errorf("%s: %q", id, figure)
		}
	}
}

// plainText returns the text of markup, its words apart.
func plainText(markup string) string {
	var text strings.Builder
	_, markup, _ = strings.Cut(markup, ">")
	for part := range strings.SplitSeq(markup, "<") {
		_, words, found := strings.Cut(part, ">")
		if !found {
			words = ""
		}
		text.WriteString(words + " ")
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
