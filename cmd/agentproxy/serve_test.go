package main

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/configfile"
)

func TestTheWelcomeNamesOnlyWhatIsSold(t *testing.T) {
	var with, without bytes.Buffer
	welcome(&with, configfile.Settings{Dev: true}, link)
	s := configfile.Settings{Dev: true, RegisterLimit: 5}
	s.Catalog.WithoutEmbedded = true
	welcome(&without, s, link)
	if got := with.String(); !strings.Contains(got, "dyn_fast_1") || !strings.Contains(got, "registration is unlimited") {
		t.Errorf("with the embedded catalogue\n%s", got)
	}
	if got := without.String(); strings.Contains(got, "dyn_fast_1") || !strings.Contains(got, "/v1/products") || strings.Contains(got, "unlimited") {
		t.Errorf("without it\n%s", got)
	}
}

// link is the path of a link that signs in.
func link() string { return "/sign-in/once" }

func TestTheWelcomeNamesThePagesForPeople(t *testing.T) {
	for listens, want := range map[string]string{"127.0.0.1:8082": "http://127.0.0.1:8082 (", ":8082": "http://localhost:8082 (",
		"[::]:8082": "http://localhost:8082 (", "10.0.0.1:80": "http://10.0.0.1:80 ("} {
		var b bytes.Buffer
		welcome(&b, configfile.Settings{PublicURL: "http://127.0.0.1:8080", AdminAddr: listens}, link)
		if got := b.String(); !strings.Contains(got, "http://127.0.0.1:8080/console ") || !strings.Contains(got, "operator   "+want) {
			t.Errorf("%s:\n%s", listens, got)
		}
	}
}

// What signs in is printed in development mode alone; elsewhere the place of the credential is.
func TestTheWelcomeNamesWhatSignsIn(t *testing.T) {
	for _, c := range []struct {
		s    configfile.Settings
		want string
	}{
		{configfile.Settings{Dev: true, DatabasePath: "ap.db"}, "http://127.0.0.1:8082/sign-in/once (signs you in once, within 5 minutes; agentproxy admin token prints the token)"},
		{configfile.Settings{DatabasePath: "ap.db"}, "http://127.0.0.1:8082 (with the token in ap.db.admin)"},
		{configfile.Settings{}, "http://127.0.0.1:8082 (with the token that agentproxy admin token prints)"},
		{configfile.Settings{AdminPassword: "correct horse battery"}, "http://127.0.0.1:8082 (as operator, with AGENTPROXY_ADMIN_PASSWORD)"},
	} {
		var b bytes.Buffer
		c.s.AdminAddr = "127.0.0.1:8082"
		welcome(&b, c.s, func() string {
			if !c.s.Dev {
				t.Error("a link is made outside development mode")
			}
			return link()
		})
		if got := b.String(); !strings.Contains(got, "operator   "+c.want+"\n") || strings.Contains(got, "horse") {
			t.Errorf("it prints\n%s\nwant %s", got, c.want)
		}
	}
}

func TestATakenPortIsReportedWithItsVariable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = net.Listen("tcp", l.Addr().String())
	s := configfile.Settings{HTTPAddr: "127.0.0.1:1", GatewayAddr: strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1), AdminAddr: "127.0.0.1:2"}
	if got := taken(fmt.Errorf("gateway: %w", err), s).Error(); !strings.HasSuffix(got, "choose another address with AGENTPROXY_GATEWAY_ADDR") {
		t.Error(got)
	}
	_, err = net.Listen("tcp", "192.0.2.1:1")
	if got := taken(err, s); got != err {
		t.Errorf("another fault became %q", got)
	}
}

func TestDurationsAreLoggedWithTheirUnit(t *testing.T) {
	var out bytes.Buffer
	logger(&out, configfile.Settings{LogLevel: "info", LogFormat: "json"}).Info("request", "duration", 1500*time.Microsecond, "bytes", 7)
	if got := out.String(); !strings.Contains(got, `"duration":"1.5ms","bytes":7`) {
		t.Error(got)
	}
}

func TestACommandWithoutADatabaseFails(t *testing.T) {
	t.Setenv("AGENTPROXY_CONFIG", "")
	file := filepath.Join(t.TempDir(), "agentproxy.db")
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://"+file)
	status, _, errOut := command("agent", "list")
	if status != exitFailed || !strings.Contains(errOut, "there is no database at "+file) {
		t.Errorf("%d: %s", status, errOut)
	}
}
