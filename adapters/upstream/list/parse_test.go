package list_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream/list"
	"agentproxy/domain/session"
)

// at is a line of the form host:port with a credential.
func at(host string, port uint16, credential ...string) list.Line {
	l := list.Line{Host: host, Port: port}
	if len(credential) > 0 {
		l.User, l.Password = credential[0], credential[1]
	}
	return l
}

func TestFormsOfAProxy(t *testing.T) {
	t.Parallel()
	over := func(p session.Protocol, l list.Line) list.Line { l.Protocol = p; return l }
	for text, want := range map[string]list.Line{
		"192.0.2.1:8080":                                              at("192.0.2.1", 8080),
		"192.0.2.1:8080:bob:secret":                                   at("192.0.2.1", 8080, "bob", "secret"),
		"bob:secret@192.0.2.1:8080":                                   at("192.0.2.1", 8080, "bob", "secret"),
		"bob:secret:192.0.2.1:8080":                                   at("192.0.2.1", 8080, "bob", "secret"),
		"192.0.2.1:8080@bob:secret":                                   at("192.0.2.1", 8080, "bob", "secret"),
		"gate.example.com:1080:bob:secret":                            at("gate.example.com", 1080, "bob", "secret"),
		"localhost:1080":                                              at("localhost", 1080),
		"squid:3128:bob:secret":                                       at("squid", 3128, "bob", "secret"),
		"squid:3128:bob:1234":                                         at("squid", 3128, "bob", "1234"),
		"bob:1234:gate.example.com:3128":                              at("gate.example.com", 3128, "bob", "1234"),
		"bob:1234@squid:3128":                                         at("squid", 3128, "bob", "1234"),
		"192.0.2.1:8080:john.doe:1234":                                at("192.0.2.1", 8080, "john.doe", "1234"),
		"john.doe:1234:192.0.2.1:8080":                                at("192.0.2.1", 8080, "john.doe", "1234"),
		"192.0.2.1:8080:bob:pa:ss:word":                               at("192.0.2.1", 8080, "bob", "pa:ss:word"),
		"bob:pa:ss:192.0.2.1:8080":                                    at("192.0.2.1", 8080, "bob", "pa:ss"),
		"bob:p@ss:w@192.0.2.1:8080":                                   at("192.0.2.1", 8080, "bob", "p@ss:w"),
		"192.0.2.1:8080@bob:p@ss":                                     at("192.0.2.1", 8080, "bob", "p@ss"),
		"[2001:db8::1]:8080":                                          at("2001:db8::1", 8080),
		"[2001:db8::1]:8080:bob:secret":                               at("2001:db8::1", 8080, "bob", "secret"),
		"bob:secret:[2001:db8::1]:8080":                               at("2001:db8::1", 8080, "bob", "secret"),
		"bob:se:cret:[2001:db8::1]:8080":                              at("2001:db8::1", 8080, "bob", "se:cret"),
		"bob:secret@[2001:db8::1]:8080":                               at("2001:db8::1", 8080, "bob", "secret"),
		"[2001:db8::1]:8080@bob:secret":                               at("2001:db8::1", 8080, "bob", "secret"),
		"192.0.2.1,8080,bob,secret":                                   at("192.0.2.1", 8080, "bob", "secret"),
		"192.0.2.1|8080|bob|secret":                                   at("192.0.2.1", 8080, "bob", "secret"),
		"192.0.2.1|8080|bob|se,cret":                                  at("192.0.2.1", 8080, "bob", "se,cret"),
		"bob,secret,192.0.2.1,8080":                                   at("192.0.2.1", 8080, "bob", "secret"),
		"192.0.2.1:8080:bob:se,cr|et#1":                               at("192.0.2.1", 8080, "bob", "se,cr|et#1"),
		"http://192.0.2.1:8080":                                       over(session.HTTP, at("192.0.2.1", 8080)),
		"http://192.0.2.1:8080/":                                      over(session.HTTP, at("192.0.2.1", 8080)),
		"https://bob:secret@192.0.2.1:8080":                           over(session.HTTP, at("192.0.2.1", 8080, "bob", "secret")),
		"socks5://bob:secret@192.0.2.1:1080":                          over(session.SOCKS5, at("192.0.2.1", 1080, "bob", "secret")),
		"SOCKS5H://bob:secret@192.0.2.1:1080":                         over(session.SOCKS5, at("192.0.2.1", 1080, "bob", "secret")),
		"socks5://192.0.2.1:1080:bob:secret":                          over(session.SOCKS5, at("192.0.2.1", 1080, "bob", "secret")),
		"http://bob:s%40%3Acret%2F@[::1]:80":                          over(session.HTTP, at("::1", 80, "bob", "s@:cret/")),
		"http://192.0.2.1:99@192.0.2.2:80":                            over(session.HTTP, at("192.0.2.2", 80, "192.0.2.1", "99")),
		"portal.example.io:1080:user_1,type_mobile,country_FR:secret": at("portal.example.io", 1080, "user_1,type_mobile,country_FR", "secret"),
		"portal.example.io:1080:user_1|type_mobile|country_FR:secret": at("portal.example.io", 1080, "user_1|type_mobile|country_FR", "secret"),
	} {
		got, faults := list.Parse([]byte(text))
		if len(faults) > 0 || len(got) != 1 {
			t.Errorf("%s: %d proxies, %v", text, len(got), faults)
			continue
		}
		want.No = 1
		if got[0] != want {
			t.Errorf("%s: got %s %s %q %q", text, got[0].Protocol, got[0], got[0].User, got[0].Password)
		}
	}
}

func TestLinesAndColumns(t *testing.T) {
	t.Parallel()
	text := "\xef\xbb\xbf# my proxies\r\n\r\n" +
		"  192.0.2.1:1\r\n" +
		"192.0.2.2:1\tUS\tNewYork\tisp\t2027-01-31\t5\r\n" +
		"192.0.2.3:1  de  -  Mobile # rented until spring\n" +
		"192.0.2.4:1 # country=FR city=paris TYPE=datacenter ends=2027-02-01T10:00:00+02:00 sessions=3 note=ignored\n" +
		"192.0.2.5:1:bob:pa#ss country=US ends=2027-01-31 #city=miami\n" +
		"\t\n" +
		"192.0.2.6:1 #"
	day := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	want := []list.Line{
		{No: 3, Host: "192.0.2.1", Port: 1},
		{No: 4, Host: "192.0.2.2", Port: 1, Country: "US", City: "newyork", Network: "isp", Ends: day, MaxSessions: 5},
		{No: 5, Host: "192.0.2.3", Port: 1, Country: "DE", Network: "mobile"},
		{No: 6, Host: "192.0.2.4", Port: 1, Country: "FR", City: "paris", Network: "datacenter", Ends: day.Add(8 * time.Hour), MaxSessions: 3},
		{No: 7, Host: "192.0.2.5", Port: 1, User: "bob", Password: "pa#ss", Country: "US", City: "miami", Ends: day},
		{No: 9, Host: "192.0.2.6", Port: 1},
	}
	got, faults := list.Parse([]byte(text))
	if len(faults) > 0 || len(got) != len(want) {
		t.Fatalf("%d proxies, %v", len(got), faults)
	}
	for i := range want {
		if fmt.Sprintf("%+v", fields(got[i])) != fmt.Sprintf("%+v", fields(want[i])) {
			t.Errorf("got %+v, want %+v", fields(got[i]), fields(want[i]))
		}
	}
}

// fields is a Line that prints.
func fields(l list.Line) any {
	type open list.Line
	return open(l)
}

func TestEveryFaultIsReportedWithItsLineAndNoSecret(t *testing.T) {
	t.Parallel()
	cases := []struct{ line, want string }{
		{"hunter2", "must be host:port, host:port:user:password, user:password@host:port or a URL"},
		{"192.0.2.1", "must be host:port"},
		{"192.0.2.1:0", "must be host:port"},
		{"192.0.2.1:65536:bob:hunter2", "must be host:port"},
		{"192.0.2.1:080:bob:hunter2", "must be host:port"},
		{"192.0.2.256:80:bob:hunter2", "must be host:port"},
		{"2001:db8::1:8080", "must be host:port"},
		{"[2001:db8::g]:80", "must be host:port"},
		{"[fe80::1%eth0]:80", "must be host:port"},
		{"[192.0.2.1]:80", "must be host:port"},
		{"-x.example:80", "must be host:port"},
		{"192.0.2.1:80:192.0.2.2:90", "both sides of @ may be host:port"},
		{"a.example:80@b.example:90", "both sides of @ may be host:port"},
		{"192.0.2.1:80:hunter2", "has a user name without a password"},
		{"hunter2@192.0.2.1:80", "has a user name without a password"},
		{":hunter2@192.0.2.1:80", "user name and password must be 1 to 255 bytes each"},
		{"192.0.2.1:80:bob:" + strings.Repeat("hunter2", 40), "user name and password must be 1 to 255 bytes each"},
		{"socks4://192.0.2.1:80", "the scheme must be http, https, socks5 or socks5h"},
		{"http://192.0.2.1:80/hunter2", "a URL of a proxy has no path"},
		{"http://bob:hunter2%zz@192.0.2.1:80", "the user info of the URL has a wrong percent escape"},
		{"http://bob:hunter2%0a@192.0.2.1:80", "holds a control character"},
		{"192.0.2.1:80:bob:hunter2\x07", "holds a control character"},
		{"192.0.2.1:80:bob:hunter2\xff", "holds a control character"},
		{"192.0.2.1:80 hunter2", "country must be an ISO 3166-1 code"},
		{"192.0.2.1:80 US hunter2!", "city must be"},
		{"192.0.2.1:80 US - hunter2", "type must be residential"},
		{"192.0.2.1:80 US - isp hunter2", "ends must be a day"},
		{"192.0.2.1:80 US - isp 2027-02-30", "ends must be a day"},
		{"192.0.2.1:80 US - isp 2027-01-31 0", "sessions must be 1 to 100000"},
		{"192.0.2.1:80 US - isp 2027-01-31 1 hunter2", "has more columns than"},
		{"192.0.2.1:80 hunter2=x", "has a column of unknown name"},
		{"192.0.2.1:80 # country=hunter2", "country must be an ISO 3166-1 code"},
	}
	var text strings.Builder
	text.WriteString("192.0.2.9:1:bob:hunter2\n\n")
	for _, c := range cases {
		text.WriteString(c.line + "\n")
	}
	text.WriteString("http://bob:another@192.0.2.9:1\n")
	_, faults := list.Parse([]byte(text.String()))
	if len(faults) != len(cases)+1 {
		t.Fatalf("%d faults, want %d: %v", len(faults), len(cases)+1, faults)
	}
	for i, c := range cases {
		if f := faults[i]; f.Line != i+3 || !strings.HasPrefix(f.Text, c.want) || strings.Contains(f.Error(), "hunter2") {
			t.Errorf("%q: %v", c.line, f)
		}
	}
	if f := faults[len(cases)]; f.Text != "is the proxy of line 1: host, port and user name are the same" {
		t.Errorf("a proxy twice: %v", f)
	}
}

func TestAListIsBounded(t *testing.T) {
	t.Parallel()
	if _, faults := list.Parse(make([]byte, list.MaxBytes+1)); len(faults) != 1 {
		t.Errorf("a long list: %v", faults)
	}
	var text strings.Builder
	for i := range list.MaxLines + 1 {
		fmt.Fprintf(&text, "h%d.example:80\n", i)
	}
	if got, faults := list.Parse([]byte(text.String())); len(faults) != 1 || got != nil {
		t.Errorf("%d proxies: %v", len(got), faults)
	}
	if got, faults := list.Parse([]byte(text.String()[:strings.LastIndex(text.String(), "h")])); len(faults) != 0 || len(got) != list.MaxLines {
		t.Errorf("%d proxies: %v", len(got), faults)
	}
}

func TestALineShowsNoCredential(t *testing.T) {
	t.Parallel()
	l := at("192.0.2.1", 80, "bob-user", "hunter2")
	for _, text := range []string{fmt.Sprintf("%v %+v %s %#v", l, l, l, l), fmt.Sprint([]list.Line{l}), l.Key()} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "bob-user") {
			t.Errorf("it shows %s", text)
		}
	}
}

// What is parsed is written as a URL and parsed again, and nothing of a line is in its fault.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"192.0.2.1:80", "a:b@c.d:1 US x isp 2027-01-01 4", "[::1]:8080:user:pa:ss # city=x country=DE",
		"socks5h://u:p%40@h:1", "a,1,b,c", "u:p:1.2.3.4:5\r\n\xef\xbb\xbf1.1.1.1:1", "1.1.1.1:1@u:p@q"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines, faults := list.Parse(text)
		for _, fault := range faults {
			if fault.Line < 1 || fault.Text == "" {
				t.Errorf("%q: the fault %+v", text, fault)
			}
		}
		for _, l := range lines {
			if l.Port == 0 || l.Host == "" || (l.User == "") != (l.Password == "") {
				t.Fatalf("%q: %+v", text, fields(l))
			}
			again, faults := list.Parse([]byte(l.URL(session.HTTP)))
			want := list.Line{No: 1, Protocol: l.Protocol, Host: l.Host, Port: l.Port, User: l.User, Password: l.Password}
			if want.Protocol == "" {
				want.Protocol = session.HTTP
			}
			if len(faults) > 0 || len(again) != 1 || again[0] != want {
				t.Errorf("%q: %q is %+v, %v", text, l.URL(session.HTTP), again, faults)
			}
		}
	})
}
