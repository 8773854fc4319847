package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"agentproxy/domain/connect"
)

type runCommand struct {
	one
	Worker  string   `help:"The exit of a worker."`
	Command []string `arg:"" passthrough:"" help:"A program and its arguments, after --."`
}

// variables is a client that takes its proxy from the environment.
var variables, _ = connect.Find("fetch")

// Run runs a program whose environment has the session's proxy. Without a live session the program is not started.
func (o runCommand) Run(ctx context.Context, s streams, service *service) error {
	if len(o.Command) > 0 && o.Command[0] == "--" {
		o.Command = o.Command[1:]
	}
	if len(o.Command) == 0 {
		return fmt.Errorf("%w: give the program to run, after --", errMisuse)
	}
	path, err := exec.LookPath(o.Command[0])
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	list, err := o.ofWorker(ctx, service, o.Worker)
	if err != nil {
		return err
	}
	proxy := proxyOf(list[0])
	if list[0].HTTPURL == "" {
		proxy.Protocol = "socks5h" // the exit looks names up, not this host
	} else if proxy, err = variables.Adapt(proxy, list[0].HTTPURL); err != nil {
		return err
	}
	return replaceBy(path, o.Command, through(os.Environ(), proxy), s)
}

// through returns an environment with the variables of a proxy in place of those that it had.
func through(env []string, p connect.Proxy) []string {
	set := connect.Variables(p)
	names := map[string]bool{}
	for _, v := range set {
		names[v.Name] = true
	}
	var out []string
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); !names[name] {
			out = append(out, e)
		}
	}
	for _, v := range set {
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}

// ended is the exit status of the program that was run, where this one could not become it.
type ended struct{ status int }

// Error returns the status.
func (e ended) Error() string { return fmt.Sprintf("the program ended with status %d", e.status) }
