package configfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

const maxSecret = 16 << 10 // bytes

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret reads where a secret is, and then the secret; empty when there is a
// fault. Faults repeat neither the secret nor what stands in its place, which
// may be the secret by mistake.
func secret(v value) string {
	if !v.given() {
		v.fault("is missing; say where it is: {env: VARIABLE} or {file: PATH}")
		return ""
	}
	if _, ok := v.node.(*ast.MappingNode); !ok {
		v.fault("a secret is never written here; say where it is: {env: VARIABLE} or {file: PATH}")
		return ""
	}
	m := v.fields("env", "file")
	env, file := m.get("env"), m.get("file")
	if env.given() == file.given() {
		if !v.faulty() {
			v.fault("must be one of {env: VARIABLE} and {file: PATH}")
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
	text, fault := read(v.doc.file, reference)
	switch {
	case fault != "":
		at.fault("%s", fault)
		return ""
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		at.fault("the secret has more than one line, or a control character")
		return ""
	}
	return text
}

func fromEnv(_, name string) (text, fault string) {
	if !variableName.MatchString(name) {
		return "", "must be the name of a variable"
	}
	if text = os.Getenv(name); text == "" {
		return "", "the variable that this line names is not set, or empty"
	}
	return text, ""
}

// fromFile reads a file, which is looked for beside the configuration. Line ends
// at its end are not part of the secret.
func fromFile(beside, name string) (text, fault string) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(beside), name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", "the file that this line names cannot be read: " + cause(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", "the file that this line names cannot be read: " + cause(err)
	}
	if text = strings.TrimRight(string(b), "\r\n"); text == "" || len(b) > maxSecret {
		return "", "the file that this line names is empty, or too long for a secret"
	}
	return text, ""
}

// cause is why a file cannot be read, without its name.
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// hide takes secrets out of a text.
func hide(text string, secrets map[string]string) string {
	longest := func(a, b string) int { return cmp.Compare(len(b), len(a)) }
	for _, s := range slices.SortedFunc(maps.Values(secrets), longest) {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[hidden]")
		}
	}
	return text
}
