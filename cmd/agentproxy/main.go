// Command agentproxy sells proxy access to software agents: serve runs the
// service, the other commands are the operator's and work on the same database
// while it runs.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"agentproxy/cmd/internal/version"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/session"
)

type cli struct {
	JSON bool `help:"Print JSON instead of text."`

	Serve    serveCmd    `cmd:"" help:"Run the service."`
	Config   configCmd   `cmd:"" help:"Check the configuration."`
	Doctor   doctorCmd   `cmd:"" help:"List what to mend before opening to strangers; exits with 1 if there is an error."`
	Provider providerCmd `cmd:"" name:"providers" help:"Show the configured providers."`
	Referrer referrerCmd `cmd:"" help:"Manage referring agents."`
	Agent    agentCmd    `cmd:"" help:"Manage agents."`
	Session  sessionCmd  `cmd:"" help:"Show and end sessions of all agents."`
	Refund   refundCmd   `cmd:"" help:"Give back a part of what a session was charged."`
	Report   reportCmd   `cmd:"" help:"Report money over all agents."`
	Audit    auditCmd    `cmd:"" help:"Show what operators did."`
	Exits    exitsCmd    `cmd:"" help:"Find who used an exit, and keep days of that log from deletion."`
	Recharge rechargeCmd `cmd:"" help:"Show recharge orders and compare them with the chain."`
	Devchain devchainCmd `cmd:"" help:"Use the development payment chain."`
	Orders   ordersCmd   `cmd:"" help:"Show and decide orders at providers."`
	Jobs     jobsCmd     `cmd:"" help:"Manage background jobs."`
	Adjust   adjustCmd   `cmd:"" help:"Correct an agent's balance."`
	Migrate  migrateCmd  `cmd:"" help:"Migrate the database to the schema of this program."`
	Verify   verifyCmd   `cmd:"" help:"Verify the ledger; if rows break a rule, lists them and exits with 1."`
	Admin    adminCmd    `cmd:"" help:"Manage who may use the admin listener."`
	Secret   secretCmd   `cmd:"" help:"Manage the root secret."`
	Restore  restoreCmd  `cmd:"" help:"Put a copy in the place of the database, or note that it went back in time."`
	Backup   backupCmd   `cmd:"" help:"Copy the database to a new file while the service runs."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

// Exit statuses: refused or failed, and wrong usage.
const (
	exitFailed = 1
	exitUsage  = 2
)

// enums are the values of options that the domain lists, and a default.
var enums = kong.Vars{
	"account_statuses":  listed(account.Statuses),
	"order_statuses":    listed(procurement.Statuses),
	"recharge_statuses": listed(recharge.Statuses),
	"session_statuses":  listed(session.Statuses),
	"session_types":     listed(session.Types),
	"tunnel_target":     tunnelTarget,
}

// listed returns values with commas between them.
func listed[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ",")
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs a command and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	return runWith(wire.Loader{}, args, stdout, stderr)
}

// runWith is like run with another Loader of the configuration.
func runWith(loader wire.Loader, args []string, stdout, stderr io.Writer) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("agentproxy"), kong.Writers(stdout, stderr),
		kong.Description("Sells proxy access to software agents. Configuration comes from AGENTPROXY_… variables; see "+
			"docs/configuration.md."),
		kong.WithHyphenPrefixedParameters(true), kong.UsageOnError(), enums,
		kong.Exit(func(code int) { exited = code }))
	if err != nil {
		fmt.Fprintln(stderr, "agentproxy:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help has printed
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "agentproxy: %v (see agentproxy --help)\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := &kit{ctx: ctx, in: os.Stdin, out: stdout, errOut: stderr, json: c.JSON, loader: loader}
	if err := parsed.Run(k); err != nil {
		k.complain(err)
		return exitFailed
	}
	return 0
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(k *kit) error {
	if k.json {
		return writeJSON(k.out, map[string]string{"version": version.String()})
	}
	_, err := fmt.Fprintln(k.out, "agentproxy", version.String())
	return err
}
