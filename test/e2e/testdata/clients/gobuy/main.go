// Registers and buys with the client that oapi-codegen made, and prints the status of the purchase and
// its event, in the type of a webhook.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	ctx, url := context.Background(), os.Args[1]
	open, err := NewClientWithResponses(url)
	must(err)
	account, err := open.RegisterWithResponse(ctx, RegisterRequest{Name: "oapi-codegen"})
	must(err)
	own, err := NewClientWithResponses(url, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-API-Key", account.JSON201.Data.ApiKey)
		return nil
	}))
	must(err)
	gb := float32(1)
	var body CreateRequest
	must(body.FromCreateNested(CreateNested{Type: SessionTypeDynamic, Config: CreateConfig{ProductNo: "dyn_fast_1", TrafficGb: &gb}}))
	bought, err := own.CreateSessionWithResponse(ctx, nil, body)
	must(err)
	fmt.Println(bought.StatusCode(), bought.JSON201.Data.SessionId)
	wait, types := int64(30), "session.active"
	feed, err := own.ListEventsWithResponse(ctx, &ListEventsParams{Types: &types, Wait: &wait})
	must(err)
	for _, e := range feed.JSON200.Data.Items {
		receive(ReceiveEventJSONRequestBody{Type: e.Type, Timestamp: e.Timestamp, Data: e.Data})
	}
}

// receive prints an event as a webhook brings it.
func receive(sent ReceiveEventJSONRequestBody) {
	body, err := json.Marshal(sent)
	must(err)
	var event ReceiveEventJSONRequestBody
	must(json.Unmarshal(body, &event))
	data, err := event.Data.AsSessionActiveData()
	must(err)
	fmt.Println(event.Type, data.SessionId)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
