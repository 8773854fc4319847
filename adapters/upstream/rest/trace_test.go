package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"agentproxy/adapters/upstream/rest"
)

// A call with all its attempts is one span, without the URL and the seller's answer.
func TestACallIsASpan(t *testing.T) {
	memory := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSyncer(memory)))
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	seller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":"secret-answer"}`, http.StatusBadGateway)
	}))
	defer seller.Close()
	c := rest.New(rest.Config{Name: "royal", Base: seller.URL + "/secret-key", PerSecond: 1000})
	if err := c.Call(t.Context(), rest.Safely, "GET", "/orders/secret-id?x=secret", nil, nil); err == nil {
		t.Fatal("the call succeeded")
	}
	spans := memory.GetSpans()
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	text := spans[0].Name + " " + spans[0].Status.Code.String() + spans[0].Status.Description
	for _, a := range spans[0].Attributes {
		text += " " + string(a.Key) + "=" + a.Value.String()
	}
	if want := "provider GET Error agentproxy.provider=royal http.request.method=GET error.type="; !strings.HasPrefix(text, want) ||
		strings.Contains(text, "secret") {
		t.Errorf("the span is %s", text)
	}
}
