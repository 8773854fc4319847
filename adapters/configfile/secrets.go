package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Secret is a text that is never printed, logged or encoded.
type Secret string

const hidden = "[hidden]"

// Format hides the secret from text.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalText hides the secret from JSON and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the secret from logs.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

const maxSecret = 16 << 10 // bytes

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret reads where a secret is, and then the secret. It returns "" if there is
// a fault. No fault repeats the secret, nor the text in its place, which may be
// the secret by mistake.
func secret(v value) string {
	if !v.given() {
		v.fault("is missing; write {env: VARIABLE} or {file: PATH}")
		return ""
	}
	if _, ok := v.node.(*ast.MappingNode); !ok {
		v.fault("must not be a secret itself; write {env: VARIABLE} or {file: PATH}")
		return ""
	}
	m := v.fields(secretKeys)
	env, file := m.get("env"), m.get("file")
	if env.given() == file.given() {
		if !v.faulty() {
			v.fault("must be either {env: VARIABLE} or {file: PATH}")
		}
		return ""
	}
	at, read := env, fromEnv
	if file.given() {
		at, read = file, fromFile
	}
	reference, ok := at.scalar()
	if !ok {
		return ""
	}
	if env.given() {
		v.doc.variables = append(v.doc.variables, reference)
	}
	text, open, fault := read(v.doc.file, reference)
	if open {
		at.warn("every user of this host can read the file of this line; run chmod 600 on it")
	}
	switch {
	case fault != "":
		at.fault("%s", fault)
		return ""
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		at.fault("the secret must be one line without control characters")
		return ""
	}
	return text
}

func fromEnv(_, name string) (text string, open bool, fault string) {
	if !variableName.MatchString(name) {
		return "", false, "must be the name of an environment variable"
	}
	if text = os.Getenv(name); text == "" {
		return "", false, "the environment variable of this line is not set, or empty"
	}
	return text, false, ""
}

// fromFile reads a file; a relative name starts at the folder of the
// configuration. Line ends at its end are not part of the secret. It is open if others
// than its owner and group can read it.
func fromFile(beside, name string) (text string, open bool, fault string) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(beside), name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", false, "cannot read the file of this line: " + cause(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		open = info.Mode().Perm()&0o004 != 0
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", false, "cannot read the file of this line: " + cause(err)
	}
	if text = strings.TrimRight(string(b), "\r\n"); text == "" || len(b) > maxSecret {
		return "", false, "the file of this line is empty, or longer than 16 KiB"
	}
	return text, open, ""
}

// cause returns why a file cannot be read, without its name.
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// hide replaces secrets in a text.
func hide(text string, secrets map[string]Secret) string {
	longest := func(a, b Secret) int { return cmp.Compare(len(b), len(a)) }
	for _, s := range slices.SortedFunc(maps.Values(secrets), longest) {
		if s != "" {
			text = strings.ReplaceAll(text, string(s), hidden)
		}
	}
	return text
}
