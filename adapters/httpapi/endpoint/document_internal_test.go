package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
)

func TestTheDocumentIsMadeWhenItIsAskedFor(t *testing.T) {
	a := New(Config{})
	type input struct{}
	type reply struct {
		Name string `json:"name" doc:"What it is called."`
	}
	Declare(a, Operation{ID: "get-name", Method: http.MethodGet, Path: "/name", Tag: "service", Open: true,
		OK: []Reply{{Status: http.StatusOK, Doc: "It.", Data: reply{Name: "one"}}},
	}, func(context.Context, *input) (int, reply, error) { return http.StatusOK, reply{}, nil })
	added := 0
	a.Document(func() { added++ })
	write := a.FinishDocument()
	if added != 0 || len(a.doc.Paths) > 0 {
		t.Fatalf("made before it was asked for: %d parts, %d paths", added, len(a.doc.Paths))
	}
	var got struct {
		Paths map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(write(), &got); err != nil || got.Paths["/name"] == nil || added != 1 {
		t.Errorf("the document: %v %v, %d parts", err, got.Paths, added)
	}
	if write(); a.doc != nil || a.parts != nil || added != 1 {
		t.Error("what the document was made from is kept, or it was made again")
	}
}
