package main

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"agentproxy/app/operator"
	"agentproxy/domain/audit"
)

// signed has the flag of a command that changes something.
type signed struct {
	By string `placeholder:"NAME" help:"Who does it, which is kept; default the system user."`
}

// noted has the flags of a command that changes something.
type noted struct {
	signed
	Reason string `help:"Why, which is kept."`
}

// reasoned has the flags of a command that does not go without a reason.
type reasoned struct {
	signed
	Reason string `required:"" help:"Why, which is kept."`
}

func (s signed) who() string {
	if s.By != "" {
		return s.By
	}
	return systemUser()
}

func (n noted) action(name, subject string) audit.Action {
	return audit.Action{By: n.who(), Name: name, Subject: subject, Reason: n.Reason}
}

func (r reasoned) action(name, subject string) audit.Action {
	return noted(r).action(name, subject)
}

// systemUser returns the name of the user that runs the program. A container may have none.
func systemUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprint("uid ", os.Getuid())
}

// do is like core for something that the operator does: it is kept with what it changes.
func (k *kit) do(a audit.Action, fn func(ctx context.Context) error, targets ...any) error {
	var trail *operator.Trail
	a.Via = audit.Command
	return k.core(func(ctx context.Context) error { return trail.Do(ctx, a, fn) }, append(targets, &trail)...)
}

// do runs fn with a part of the graph, and keeps what the operator does by it.
func do[T any](k *kit, a audit.Action, fn func(ctx context.Context, part T) error) error {
	var part T
	return k.do(a, func(ctx context.Context) error { return fn(ctx, part) }, &part)
}
