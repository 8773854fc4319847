package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// payment is what commands that cost money take.
type payment struct {
	MaxCost string `name:"max-cost" help:"US dollars; what is dearer is refused. Needed unless a terminal can ask."`
	Yes     bool   `help:"Do not ask on a terminal."`
	ID      string `name:"id" help:"The same text is paid once; a new one is made otherwise."`
}

// bound returns the most that an operation may cost: --max-cost, or on a terminal its price if a person
// agrees to it.
func (p *payment) bound(ctx context.Context, service *service, s streams, path string, body any) (string, error) {
	if p.MaxCost != "" {
		return p.MaxCost, nil
	}
	if p.Yes || !isTerminal(s.in) {
		return "", fmt.Errorf("%w: give --max-cost USD, the most that this may cost", errMisuse)
	}
	var cost quoteData
	if _, err := service.read(ctx, "POST", path+"?dry_run=true", "", body, &cost); err != nil {
		return "", err
	}
	if !agrees(s, fmt.Sprintf("This costs %s USD. Go on? [y/N] ", cost.Cost)) {
		return "", fmt.Errorf("%w: nothing was paid", errMisuse)
	}
	return cost.Cost.String(), nil
}

// pay runs the operation once for its id, which it makes if there is none.
func (p *payment) pay(ctx context.Context, service *service, path string, body, v any) (json.RawMessage, error) {
	if p.ID == "" {
		p.ID = "apx-" + rand.Text()
	}
	data, err := service.read(ctx, "POST", path, p.ID, body, v)
	if r, refused := errors.AsType[*refusal](err); err == nil || refused && !r.Retryable {
		return data, err // a repetition would be refused again
	}
	return nil, fmt.Errorf("%w (to repeat it: --id %s)", err, p.ID)
}

// agrees asks a person.
func agrees(s streams, question string) bool {
	fmt.Fprint(s.err, question)
	line, _ := bufio.NewReader(s.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
