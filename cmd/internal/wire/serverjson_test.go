package wire_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"agentproxy/cmd/internal/wire"
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
	if err := json.Unmarshal(text, &s); err != nil || s.Schema != id || s.Version != wire.Version ||
		len(s.Remotes) != 1 || s.Remotes[0].URL != "https://{host}/mcp" {
		t.Errorf("server.json has version %s and schema %s; the program has %s, the copy %s", s.Version, s.Schema, wire.Version, id)
	}
}
