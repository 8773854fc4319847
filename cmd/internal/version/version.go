// Package version names what a program was built from.
package version

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// set is the version of a release, from its linker: -X agentproxy/cmd/internal/version.set=1.2.3.
var set string

// String returns the version of this program, without a leading v: that of its release, else of its module, which
// go build takes from the tag or the commit, else its revision. Without any of them, as in go run, go test and
// builds outside a checkout, it is dev.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return versionOf(set, info)
}

// versionOf returns the version of a build: that of its release, else of its module, else of its commit.
func versionOf(release string, info *debug.BuildInfo) string {
	v := cmp.Or(release, info.Main.Version)
	if v != "" && v != "(devel)" {
		return strings.TrimPrefix(v, "v")
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	v = "dev"
	if revision := settings["vcs.revision"]; revision != "" {
		v += "-" + revision[:min(12, len(revision))]
	}
	if settings["vcs.modified"] == "true" {
		v += "-dirty"
	}
	return v
}
