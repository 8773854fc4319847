package wire

import (
	"testing"

	"agentproxy/test/apptest"
)

// A leader that is missing keeps no replica from serving, so it makes none unready. A replica whose database is away, or has
// another schema, answers no call.
func TestAMissingLeaderMakesNoReplicaUnready(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	shared := map[string]bool{}
	for _, c := range checks(w.DB, nil, nil) {
		shared[c.Name] = c.Shared
	}
	for name, want := range map[string]bool{"leader": true, "database": false, "writes": false, "migrations": false} {
		if is, known := shared[name]; !known || is != want {
			t.Errorf("%s is checked: %v; a failure leaves the replica ready: %v, want %v", name, known, is, want)
		}
	}
}
