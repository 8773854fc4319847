package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"agentproxy/adapters/apiclient"
	"agentproxy/adapters/mcp/rest"
)

// localURL is where a service on this host listens by default.
const localURL = "http://127.0.0.1:8080"

// profile is what a registration keeps.
type profile struct {
	URL    string `json:"url"`
	APIKey string `json:"api_key"`
	Secret string `json:"api_secret"`
	Agent  string `json:"agent_id"`
}

// folder returns the user's folder of this program.
func folder() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration folder: %w", err)
	}
	return filepath.Join(dir, "agentproxy"), nil
}

// loadProfile returns the profile; without a file it is empty.
func loadProfile() (p profile, err error) {
	dir, err := folder()
	if err != nil {
		return p, nil // without a home, as in a container, variables alone count
	}
	text, err := os.ReadFile(filepath.Join(dir, "profile.json"))
	if os.IsNotExist(err) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, fmt.Errorf("read the profile: %w", err)
	}
	return p, nil
}

// save writes the profile with mode 0600.
func (p profile) save() (string, error) {
	dir, err := folder()
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return "", err
	}
	if err := rest.OwnFolder(dir); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".new-*") // with mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(append(text, '\n')); err != nil {
		f.Close()
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "profile.json")
	return path, os.Rename(f.Name(), path)
}

// service is the API as a command uses it.
type service struct {
	*apiclient.Client
	tools *rest.Client
	url   string
}

// open returns the service of the variables, or else of the profile. The profile's key goes to the
// profile's service alone.
func open() (*service, error) {
	p, err := loadProfile()
	if err != nil {
		return nil, err
	}
	url, key := os.Getenv("AGENTPROXY_URL"), os.Getenv("AGENTPROXY_API_KEY")
	switch {
	case url == "" && p.URL != "":
		url = p.URL
	case url == "":
		url = localURL
	}
	if key == "" && sameService(url, p.URL) {
		key = p.APIKey
	}
	c, err := rest.New(rest.Config{URL: url, Key: key, Dir: sessionsFolder(),
		Reveal: os.Getenv("AGENTPROXY_MCP_REVEAL") == "true"})
	if err != nil {
		return nil, fmt.Errorf("AGENTPROXY_URL: %w", err)
	}
	return &service{c.API, c, url}, nil
}

// sessionsFolder returns where files with credentials go: the user's own folder, of the session of a login where there
// is no home, else empty. A folder that all users share is none: another user may have made what is in it.
func sessionsFolder() string {
	own, err := folder()
	if run := os.Getenv("XDG_RUNTIME_DIR"); err != nil && filepath.IsAbs(run) {
		own, err = filepath.Join(run, "agentproxy"), nil
	}
	if err != nil {
		return ""
	}
	return filepath.Join(own, "sessions")
}

// sameService compares two addresses, with or without /v1.
func sameService(a, b string) bool {
	trim := func(u string) string { return strings.TrimSuffix(strings.TrimSuffix(u, "/"), "/v1") }
	return trim(a) == trim(b)
}

// explanation is an error with what to do about it.
type explanation struct{ error }

// Unwrap returns the error.
func (e explanation) Unwrap() error { return e.error }

// explained adds to an error of a call where apx reads what may be wrong.
func explained(err error) error {
	if _, is := errors.AsType[explanation](err); is {
		return err
	}
	r, refused := errors.AsType[*apiclient.Error](err)
	switch {
	case errors.Is(err, io.EOF):
		return explanation{fmt.Errorf("%w (AGENTPROXY_URL is the address of the API, not that of the gateway)", err)}
	case errors.Is(err, apiclient.ErrNoAnswer):
		return explanation{fmt.Errorf("%w (AGENTPROXY_URL names the service)", err)}
	case refused && r.Code == "":
		return explanation{fmt.Errorf("%w; is AGENTPROXY_URL the address of the API?", err)}
	case refused && r.Code == apiclient.ErrAuthInvalidKey:
		return explanation{fmt.Errorf("%w (apx reads AGENTPROXY_API_KEY, or what apx register stored)", err)}
	case refused:
		if facts := factsOf(r.Details); facts != "" {
			return explanation{fmt.Errorf("%w (%s)", err, facts)}
		}
	}
	return err
}

// factsOf words what a refusal adds to its message: sums, and what is nearest to what was asked for.
func factsOf(details json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(details))
	d.UseNumber()
	var all map[string]any
	if d.Decode(&all) != nil {
		return ""
	}
	var facts []string
	for _, name := range []string{"cost", "max_cost", "required", "available", "limit", "spent", "held", "left",
		"currency", "tier"} {
		if v := all[name]; v != nil {
			facts = append(facts, fmt.Sprintf("%s %v", name, v))
		}
	}
	if list, ok := all["nearest"].([]any); ok && len(list) > 0 {
		facts = append(facts, "nearest "+strings.Trim(fmt.Sprint(list), "[]"))
	}
	if list, ok := all["grounds"].([]any); ok {
		for _, ground := range list {
			facts = append(facts, fmt.Sprint(ground))
		}
	}
	return strings.Join(facts, ", ")
}
