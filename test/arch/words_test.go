package arch_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figurative are words that comments use for code as if it were a person.
var figurative = regexp.MustCompile(`\b(says?|said|nobody|somebody|whoever|told|tells?|hears?|heard|speaks?|spoken|` +
	`wish(es)?|stands?|of ours|so many)\b`)

// unedited are the folders whose comments still have such words. The list only
// shrinks.
var unedited = []string{
	"domain/billing", "domain/egress", "domain/health", "domain/procurement", "domain/ratelimit",
	"domain/recharge", "domain/session", "domain/traffic", "ports", "app", "adapters/admin", "adapters/chain",
	"adapters/gateway", "adapters/gateway/dial", "adapters/gateway/http1", "adapters/gateway/route",
	"adapters/httpapi", "adapters/queue", "adapters/storage", "adapters/storage/codec",
	"adapters/storage/engine", "adapters/storage/postgres", "adapters/system", "adapters/upstream/gateway",
	"adapters/upstream/iproyal", "adapters/upstream/proxycheap", "adapters/upstream/proxyseller",
	"adapters/upstream/proxyssx", "adapters/webhook", "cmd/agentproxy", "test/contract", "test/fake",
	"test/fake/iproyal", "test/fake/proxycheap", "test/fake/proxyseller", "test/fake/proxyssx",
	"test/fake/seller", "test/fake/trongrid", "test/fake/upstreamproxy",
}

func TestCommentsUseTechnicalTerms(t *testing.T) {
	for path, p := range packages(t) {
		if slices.ContainsFunc(unedited, func(folder string) bool { return strings.HasPrefix(path+"/", folder+"/") }) {
			continue
		}
		for _, names := range [][]string{p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, name := range names {
				fset := token.NewFileSet()
				f, err := parser.ParseFile(fset, filepath.Join(root, path, name), nil, parser.ParseComments|parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				for _, group := range f.Comments {
					for _, c := range group.List {
						if word := figurative.FindString(c.Text); word != "" {
							t.Errorf("%s: the comment has %q: use the technical term", fset.Position(c.Pos()), word)
						}
					}
				}
			}
		}
	}
}
