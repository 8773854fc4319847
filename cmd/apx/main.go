// Command apx is a client of the API for programs and the people behind them. It keeps no state but
// the profile that its registration writes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"agentproxy/adapters/apiclient"
	"agentproxy/cmd/internal/version"
)

// commands are the commands and what they share.
type commands struct {
	options

	Register     registerCommand     `cmd:"" help:"Open an account and keep its key in the profile."`
	Account      accountCommand      `cmd:"" help:"The account."`
	Products     productsCommand     `cmd:"" help:"What is sold."`
	Quote        quoteCommand        `cmd:"" help:"What a purchase would cost."`
	Buy          buyCommand          `cmd:"" help:"Buy a session."`
	Ls           lsCommand           `cmd:"" help:"List sessions."`
	Show         showCommand         `cmd:"" help:"One session."`
	Env          envCommand          `cmd:"" help:"Lines for a shell to evaluate, with the password."`
	URL          urlCommand          `cmd:"" name:"url" help:"The proxy's address, with the password."`
	Connect      connectCommand      `cmd:"" help:"What to write so that a client uses a session."`
	Workers      workersCommand      `cmd:"" help:"Workers of a dynamic session, each with an exit of its own: makes them, or lists them all."`
	Rotate       rotateCommand       `cmd:"" help:"Change the exit of a dynamic session, or of a worker of it."`
	Explain      explainCommand      `cmd:"" help:"Why a request failed: joins the client's report with the gateway's events."`
	Check        checkCommand        `cmd:"" help:"Try one connection through a session."`
	Add          addCommand          `cmd:"" help:"Add traffic to a dynamic session."`
	Renew        renewCommand        `cmd:"" help:"Extend a static session."`
	Replace      replaceCommand      `cmd:"" help:"Replace an address of a static session."`
	Report       reportCommand       `cmd:"" help:"Report the outcome of a request; prints whether to go on, rotate or pause."`
	Events       eventsCommand       `cmd:"" help:"What happened to a session, the newest first; without one what happened to the account, --follow waits for more."`
	End          endCommand          `cmd:"" help:"End a session."`
	Balance      balanceCommand      `cmd:"" help:"The balance."`
	Transactions transactionsCommand `cmd:"" help:"The movements of the balance, the newest first."`
	Key          keyCommand          `cmd:"" help:"Keys of the account, which may have budgets: ls, add, set and rm."`
	Recharge     rechargeCommand     `cmd:"" help:"Order a recharge: where a person sends money."`
	Run          runCommand          `cmd:"" name:"run" help:"Run a program whose environment has the proxy; it is not started without a live session."`
	Forward      forwardCommand      `cmd:"" help:"Run a local proxy without a password in front of a session, which it reaches by TLS where the service has a certificate."`
	MCP          mcpCommand          `cmd:"" name:"mcp" help:"Serve the tools of agents over stdin and stdout."`
	Version      versionCommand      `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// The exit statuses.
const (
	failed = 1
	misuse = 2
	person = 3 // a person must act: no balance, a budget, a tier
)

func run(ctx context.Context, args []string, io streams) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("apx"), kong.Description("A client of the Agent Proxy Session Service."),
		kong.Writers(io.out, io.err), kong.Exit(func(code int) { exited = code }), kong.UsageOnError(),
		kong.BindToProvider(open))
	if err != nil {
		fmt.Fprintln(io.err, "apx:", err)
		return failed
	}
	if len(args) == 0 || args[0] == "help" {
		args = append(slices.Clone(args[min(len(args), 1):]), "--help")
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		c.JSON = c.JSON || slices.Contains(args, "--json") // which may follow what is wrong
		c.printError(io, "MISUSE", err)
		return misuse
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(&c.options, io); err != nil {
		if e, is := errors.AsType[ended](err); is {
			return e.status
		}
		c.printError(io, map[bool]string{true: "MISUSE", false: "FAILED"}[errors.Is(err, errMisuse)], explained(err))
		return statusOf(err)
	}
	return 0
}

// personal are the codes that a person must act on.
var personal = map[apiclient.Code]bool{apiclient.ErrInsufficientBalance: true, apiclient.ErrBudgetExceeded: true,
	apiclient.ErrTierRequired: true, apiclient.ErrAccountDisabled: true, apiclient.ErrRegistrationClosed: true}

func statusOf(err error) int {
	r, ok := errors.AsType[*apiclient.Error](err)
	switch {
	case ok && personal[r.Code]:
		return person
	case errors.Is(err, errMisuse):
		return misuse
	}
	return failed
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(c *options, io streams) error {
	if c.JSON {
		return printJSON(io.out, map[string]string{"version": version.String()})
	}
	_, err := fmt.Fprintln(io.out, version.String())
	return err
}
