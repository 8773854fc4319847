package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// folderNamed is a folder of the repository as scripts name it, with braces around alternatives.
var folderNamed = regexp.MustCompile(`\./(?:app|adapters|cmd|domain|ports|test|examples)(?:/[a-z0-9_]+|/\{[a-z0-9_,]+\})*`)

// TestScriptsNameFoldersThatExist holds that the steps of CI, of the campaigns and of make run the tests of packages
// that are there: go test of one that was renamed fails, and one in a list that a shell expands is easily missed.
func TestScriptsNameFoldersThatExist(t *testing.T) {
	t.Parallel()
	found := 0
	for _, script := range []string{".ci/run", ".ci/campaign", ".ci/flakes", "Makefile"} {
		text, err := os.ReadFile(filepath.Join(root, script))
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range folderNamed.FindAllString(string(text), -1) {
			for _, path := range expandBraces(named) {
				found++
				if info, err := os.Stat(filepath.Join(root, path)); err != nil || !info.IsDir() {
					t.Errorf("%s names %s, which is no folder", script, path)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d folders are named, want at least 30", found)
	}
}

// expandBraces returns a path with each alternative of its braces, as a shell does.
func expandBraces(path string) []string {
	before, rest, braces := strings.Cut(path, "{")
	if !braces {
		return []string{path}
	}
	list, after, _ := strings.Cut(rest, "}")
	var all []string
	for part := range strings.SplitSeq(list, ",") {
		all = append(all, expandBraces(before+part+after)...)
	}
	return all
}
