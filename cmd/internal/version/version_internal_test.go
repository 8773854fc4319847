package version

import (
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	info := func(module string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: module}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "87cde2735e0f4a1b2c3d4e5f60718293a4b5c6d7"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		name, release string
		info          *debug.BuildInfo
		want          string
	}{
		{"of a release", "0.2.0", info("v0.1.1-0.20261124211223-87cde2735e0f", revision), "0.2.0"},
		{"of a tag", "", info("v0.2.0", revision), "0.2.0"},
		{"of a changed commit", "", info("v0.2.1-0.20261124211223-87cde2735e0f+dirty", revision, modified),
			"0.2.1-0.20261124211223-87cde2735e0f+dirty"},
		{"of a revision", "", info("(devel)", revision), "dev-87cde2735e0f"},
		{"of a changed revision", "", info("(devel)", revision, modified), "dev-87cde2735e0f-dirty"},
		{"of neither", "", info("(devel)"), "dev"},
		{"of nothing", "", info(""), "dev"},
	} {
		if got := versionOf(c.release, c.info); got != c.want {
			t.Errorf("%s: the version is %q, not %q", c.name, got, c.want)
		}
	}
}

// TestReleasesSetTheVersion holds because a linker ignores -X of a variable that does not exist.
func TestReleasesSetTheVersion(t *testing.T) {
	t.Parallel()
	want := "-X " + reflect.TypeFor[here]().PkgPath() + ".set="
	for _, file := range []string{"Dockerfile", ".goreleaser.yaml"} {
		text, err := os.ReadFile("../../../" + file)
		builds := strings.Count(string(text), "-trimpath")
		if err != nil || builds == 0 || strings.Count(string(text), want) != builds {
			t.Errorf("%s has not %s in each of %d builds: %v", file, want, builds, err)
		}
	}
	_ = set // the name that they set
}

type here struct{}
