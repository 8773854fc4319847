package main

import (
	"context"
	"fmt"
	"strings"

	"agentproxy/adapters/apiclient"
	"agentproxy/adapters/mcp"
	"agentproxy/domain/diagnose"
)

type explainCommand struct {
	one
	Error  string `help:"The client's error as it is."`
	Status int    `help:"The status of the answer."`
	Client string `help:"The client: curl, playwright, requests ..."`
	Host   string `help:"The host of the target."`
}

// Run prints why a request may have failed, the most certain cause first.
func (o explainCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	seen := diagnose.Observation{Error: o.Error, Status: o.Status, Client: o.Client, Host: o.Host}
	causes, err := mcp.Diagnose(ctx, service.tools, o.Session, seen)
	if err != nil {
		return refused(err)
	}
	if c.JSON {
		return printJSON(s.out, map[string]any{"causes": causes})
	}
	if !isTerminal(s.out) {
		for _, c := range causes {
			fmt.Fprintf(s.out, "%s\t%s\t%s\t%s\tretry %v\n", c.Certainty, c.Name, c.What, c.Do, c.Retry)
		}
		return nil
	}
	for _, c := range causes {
		fmt.Fprintf(s.out, "%s: %s\n  because %s\n  %s\n", c.Certainty, c.What, strings.Join(c.Evidence, "; "), c.Do)
	}
	return nil
}

// refused returns a refusal of the service as a command's error, whose code decides the exit status.
func refused(err error) error {
	code, message, found := strings.Cut(err.Error(), ": ")
	if !found || strings.ToUpper(code) != code {
		return err
	}
	return &apiclient.Error{Code: apiclient.Code(code), Message: message}
}
