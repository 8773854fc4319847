package wire_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestServerJSON checks the entry for registries of tools against a copy of their schema.
func TestServerJSON(t *testing.T) {
	t.Parallel()
	read := func(path string) any {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(path, err)
		}
		return v
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("server.schema.json", read("testdata/server.schema.json")); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("server.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	entry := read("../../../server.json")
	if err := schema.Validate(entry); err != nil {
		t.Error(err)
	}
	for _, missing := range []string{"name", "description", "version"} {
		broken := read("../../../server.json").(map[string]any)
		delete(broken, missing)
		if schema.Validate(broken) == nil {
			t.Errorf("the schema takes an entry without %s", missing)
		}
	}
	var s struct {
		Schema  string `json:"$schema"`
		Version string
		Remotes []struct{ URL string }
	}
	text, _ := json.Marshal(entry) // it was read from JSON
	id, _ := read("testdata/server.schema.json").(map[string]any)["$id"].(string)
	if err := json.Unmarshal(text, &s); err != nil || s.Schema != id || len(s.Remotes) != 1 || s.Remotes[0].URL != "https://{host}/mcp" {
		t.Errorf("server.json has schema %s and remotes %v; the copy has schema %s", s.Schema, s.Remotes, id)
	}
	if want := newest(t); s.Version != want {
		t.Errorf("server.json has version %s, CHANGELOG.md %s", s.Version, want)
	} else if k, err := os.ReadFile("../../../deploy/kubernetes/kustomization.yaml"); !strings.Contains(string(k), "newTag: "+want+"\n") {
		t.Errorf("kustomization.yaml has another image than of %s, the newest version of CHANGELOG.md: %v", want, err)
	}
}

// newest returns the newest version of the changelog, which a release and what is published with it are named by.
func newest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../CHANGELOG.md")
	m := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("CHANGELOG.md has no version", err)
	}
	return string(m[1])
}
