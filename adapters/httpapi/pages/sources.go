package pages

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// Sources are the tables of the program that the pages show.
type Sources struct {
	Base    string // the base URL of the service, without a slash at its end
	Gateway string // host:port of the gateway
	// GatewayTLS is true if the gateway takes TLS too.
	GatewayTLS bool
	// GatewayOnlyTLS is true if it refuses what is not TLS.
	GatewayOnlyTLS bool

	Target  string // the URL that examples fetch through a proxy
	Shop    string // the name on pages for people
	Version string
	Contact string // URI of those who handle abuse; empty: none is published

	// Downloads are the platforms that apx is offered for, such as linux-amd64.
	Downloads []string

	Operations []Operation // in the order of the document
	Errors     []Refusal   // of the API
	Gateways   []Refusal   // of the gateway
	Tools      []Tool      // empty: the service offers none
}

// Operation is an operation of the API.
type Operation struct {
	Method, Path, Summary string
	Scope                 string // empty: none is needed
}

// Refusal is a code with what it means.
type Refusal struct {
	Code      string
	Status    int
	Retryable bool
	Message   string
}

// Tool is a tool of the Model Context Protocol.
type Tool struct{ Name, Scope, Does string }

// Command is a command of apx.
type Command struct {
	Name  string   `json:"name"`
	Args  string   `json:"args,omitempty"` // as its usage shows them
	Flags []string `json:"flags,omitempty"`
	Help  string   `json:"help"`
}

// commandsText is written by make generate, from what the program parses: an adapter cannot
// import a program.
//
//go:embed commands.json
var commandsText []byte

// Commands returns the commands of apx.
var Commands = sync.OnceValue(func() (list []Command) {
	if err := json.Unmarshal(commandsText, &list); err != nil {
		panic("pages: commands.json: " + err.Error()) // it is embedded
	}
	return list
})
