package httpapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/strictjson"
)

// Routes returns every route of the server.
func (s *Server) Routes() gin.RoutesInfo { return s.api.Engine.Routes() }

// TestEncoder compares strictjson with encoding/json for every reply that the
// document shows.
func TestEncoder(t *testing.T) {
	t.Parallel()
	s := newBare()
	for _, o := range s.api.Operations() {
		for _, r := range o.OK {
			for _, v := range []any{r.Data, r.Or} {
				switch v.(type) {
				case endpoint.PNG, endpoint.Text:
					continue // nothing encodes it
				}
				got := strictjson.Append(nil, v)
				want, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s:\n%s, encoding/json writes\n%s", o.ID, got, want)
				}
			}
		}
	}
}

// newBare is a server without use cases: its declarations.
func newBare() *Server { return New(Config{}, Deps{Log: slog.New(slog.DiscardHandler)}) }
