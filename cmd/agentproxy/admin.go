package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"agentproxy/adapters/admin/signin"
	"agentproxy/cmd/internal/wire"
)

type adminCmd struct {
	Token adminTokenCmd `cmd:"" help:"Print the token of the admin listener, which is the credential where AGENTPROXY_ADMIN_PASSWORD is not set."`
	Hash  adminHashCmd  `cmd:"" help:"Print the line of a user for the file that AGENTPROXY_ADMIN_USERS names. The password is read from the standard input."`
}

type adminTokenCmd struct{}

// Run prints the token.
func (adminTokenCmd) Run(k *kit) error {
	settings, err := k.loader.Load()
	if err != nil {
		return err
	}
	token, err := wire.AdminToken(settings)
	if err != nil {
		return err
	}
	if k.json {
		return writeJSON(k.out, map[string]string{"token": token})
	}
	_, err = fmt.Fprintln(k.out, token)
	return err
}

type adminHashCmd struct {
	Name string `arg:"" name:"NAME" help:"The name of the user."`
	Role string `enum:"read,act" required:"" help:"What the user may do: read sees the pages, act also does what commands do."`
}

// Run prints a line with the argon2id hash of a password.
func (c adminHashCmd) Run(k *kit) error {
	password, err := k.password()
	if err != nil {
		return err
	}
	line, err := signin.Line(c.Name, signin.Role(c.Role), password)
	if err != nil {
		return err
	}
	if k.json {
		return writeJSON(k.out, map[string]string{"line": line})
	}
	_, err = fmt.Fprintln(k.out, line)
	return err
}

// password reads a password from the first line of the standard input; on a terminal twice, without showing it.
func (k *kit) password() (string, error) {
	lines := bufio.NewReader(io.LimitReader(k.in, 4096))
	f, ok := k.in.(*os.File)
	if !ok || !terminal(f) {
		return k.line(lines)
	}
	defer silence(f)()
	var texts [2]string
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(k.errOut, prompt)
		text, err := k.line(lines)
		fmt.Fprintln(k.errOut)
		if err != nil {
			return "", err
		}
		texts[i] = text
	}
	if texts[0] != texts[1] {
		return "", errors.New("the passwords differ")
	}
	return texts[0], nil
}

// line reads a line, or until the command is interrupted.
func (k *kit) line(r *bufio.Reader) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := r.ReadString('\n')
		if text != "" && errors.Is(err, io.EOF) {
			err = nil
		}
		read <- result{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case got := <-read:
		if errors.Is(got.err, io.EOF) {
			return "", errors.New("the standard input has no password")
		}
		return got.text, got.err
	case <-k.ctx.Done():
		return "", context.Cause(k.ctx)
	}
}
