package main

import (
	"testing"

	"agentproxy/adapters/apiclient"
)

func TestABudgetIsOfNumbers(t *testing.T) {
	t.Parallel()
	b, err := keyLimits{Total: "10", Daily: "2.5"}.budget()
	if err != nil || b != (apiclient.KeyBudgetRequest{Total: "10", Daily: "2.5"}) {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := (keyLimits{Total: "ten"}).budget(); err == nil {
		t.Error("a word is taken for a number")
	}
}
