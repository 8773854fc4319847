package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentproxy/adapters/apiclient"
)

// payment is what commands that cost money take.
type payment struct {
	MaxCost string `name:"max-cost" help:"US dollars; what is dearer is refused. Needed unless a terminal can ask."`
	Yes     bool   `help:"Do not ask on a terminal."`
	ID      string `name:"id" help:"The same text is paid once; a new one is made otherwise."`
}

// bound returns the most that an operation may cost: --max-cost, or on a terminal its price if a person
// agrees to it.
func (p *payment) bound(s streams, price func() (apiclient.DryRun, error)) (json.Number, error) {
	if p.MaxCost != "" {
		return json.Number(p.MaxCost), nil
	}
	if p.Yes || !isTerminal(s.in) {
		return "", fmt.Errorf("%w: give --max-cost USD, the most that this may cost", errMisuse)
	}
	d, err := price()
	if err != nil {
		return "", err
	}
	if !agrees(s, fmt.Sprintf("This costs %s USD. Go on? [y/N] ", d.Cost)) {
		return "", fmt.Errorf("%w: nothing was paid", errMisuse)
	}
	return d.Cost, nil
}

// id returns the idempotency key of the operation, and makes one if --id has none.
func (p *payment) id() string {
	if p.ID == "" {
		p.ID = "apx-" + rand.Text()
	}
	return p.ID
}

// repeat returns an error of the operation with how to repeat it, unless a repetition would be refused again, or there
// is no error.
func (p *payment) repeat(err error) error {
	if r, refused := errors.AsType[*apiclient.Error](err); err == nil || refused && !r.Retryable {
		return err
	}
	return fmt.Errorf("%w (to repeat it: --id %s)", explained(err), p.ID)
}

// areNumbers reports whether texts are numbers as JSON has them, or empty.
func areNumbers(list ...json.Number) bool {
	_, err := json.Marshal(list)
	return err == nil
}

// agrees asks a person.
func agrees(s streams, question string) bool {
	fmt.Fprint(s.err, question)
	line, _ := bufio.NewReader(s.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
