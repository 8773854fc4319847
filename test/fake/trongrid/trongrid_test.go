package trongrid_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentproxy/test/fake/trongrid"
)

type page struct {
	Data []struct {
		TxID string `json:"transaction_id"`
	} `json:"data"`
	Success bool           `json:"success"`
	Meta    map[string]any `json:"meta"`
}

func get(t *testing.T, grid *trongrid.Server, query string, into any) int {
	t.Helper()
	res, err := http.Get(grid.URL + "/v1/accounts/" + trongrid.Address(2) + "/transactions/trc20?" + query)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		if len(body) > 0 {
			t.Errorf("%d comes with %q", res.StatusCode, body)
		}
		return res.StatusCode
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// The index has the pages of the documented one, with its traps.
func TestTheIndexPages(t *testing.T) {
	t.Parallel()
	grid := trongrid.Start(t)
	for range 450 {
		grid.Send(trongrid.Address(1), trongrid.Address(2), 1)
	}
	grid.Mine(1)
	if status := get(t, grid, "limit=201", nil); status != http.StatusBadRequest {
		t.Errorf("a limit of 201 is answered %d", status)
	}
	seen, mark, sizes := map[string]bool{}, "", []int{200, 200, 50}
	for i, size := range sizes {
		var p page
		get(t, grid, "limit=200&fingerprint="+mark, &p)
		mark, _ = p.Meta["fingerprint"].(string)
		if _, linked := p.Meta["links"]; len(p.Data) != size || !p.Success || (mark == "") != (i == 2) || linked != (i < 2) {
			t.Errorf("page %d has %d rows and %v", i, len(p.Data), p.Meta)
		}
		for _, row := range p.Data {
			seen[row.TxID] = true
		}
	}
	if len(seen) != 450 {
		t.Errorf("three pages have %d rows", len(seen))
	}
	var p page
	get(t, grid, "limit=100", &p)
	next, _ := p.Meta["fingerprint"].(string)
	for query, want := range map[string]int{"limit=100": http.StatusOK, "limit=50": http.StatusBadRequest,
		"limit=100&only_to=true": http.StatusBadRequest} {
		if status := get(t, grid, query+"&fingerprint="+next, &p); status != want {
			t.Errorf("%s of a page of limit=100 is answered %d, want %d", query, status, want)
		}
	}
	if get(t, grid, "", &p); len(p.Data) != 20 {
		t.Errorf("without a limit a page has %d rows", len(p.Data))
	}
}

// A fork removes the transactions of blocks that are not solid and no others.
func TestAForkEndsAtTheSolidHead(t *testing.T) {
	t.Parallel()
	grid := trongrid.Start(t)
	grid.Send(trongrid.Address(1), trongrid.Address(2), 1)
	grid.Mine(1 + trongrid.Gap)
	young := grid.Send(trongrid.Address(1), trongrid.Address(2), 1)
	grid.Mine(1)
	before, at := grid.Head()
	waiting := grid.Send(trongrid.Address(1), trongrid.Address(2), 1)
	gone := grid.Reorg(100)
	after, then := grid.Head()
	if len(gone) != 1 || gone[0].ID != young || after != before+1 || !then.Equal(at.Add(trongrid.Every)) {
		t.Errorf("the fork took %+v and went from %d at %s to %d at %s", gone, before, at, after, then)
	}
	grid.Mine(1)
	var p page
	get(t, grid, "", &p)
	var listed []string
	for _, row := range p.Data {
		listed = append(listed, row.TxID)
	}
	if len(listed) != 2 || listed[0] != waiting {
		t.Errorf("the index has %s", strings.Join(listed, ", "))
	}
}
