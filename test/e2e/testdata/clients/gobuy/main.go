// Registers and buys with the client that oapi-codegen made, and prints the status of the purchase.
package main

import (
	"context"
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
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
