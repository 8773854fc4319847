package console_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain/exit"
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
		OK(t, w.Store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			return tx.ExitMeasures().Put(ctx, exit.Record{Ref: exit.Ref{AgentID: agent, SessionID: id, Index: index}, Of: "0.0", Told: told,
				Measured: exit.Measured{IP: netip.MustParseAddr("192.0.2.1"), At: w.Clock.Now(), Declared: "DE", Known: exit.Known{Listed: listed}}})
		}))
	}
	put(own.ID, 0, false)
	put(seller.ID, 0, true, "list")
	put(seller.ID, 1, true)
	code, body := w.get("/exits/quality")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	for row, want := range map[string]string{"quality-embedded-DE": "embedded DE 1 1 0 0 0 $0", "quality-remote-DE": "remote DE 2 2 2 1 0 $0"} {
		_, after, _ := strings.Cut(body, `id="`+row+`"`)
		cells, _, _ := strings.Cut(after, "</tr>")
		if got := plainText(cells); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", row, got)
		}
	}
	for id, want := range map[string]string{"exits": "3", "measured": "3", "differing": "2", "listed": "1", "replaced": "0"} {
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
