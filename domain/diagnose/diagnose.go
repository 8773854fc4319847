// Package diagnose finds out why a request through a session failed: it joins what the client
// reports with what the event log of the session has. It does no IO.
package diagnose

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Observation is what a client reports of a failed request. Every field may be missing.
type Observation struct {
	Error  string // its text, which no answer repeats
	Status int    // of an HTTP answer, from whomever; 0: none
	Client string // the program or library
	Host   string // of the target, with or without a port
}

// Session is the state of a session.
type Session struct {
	Status string // creating, active, terminated, expired or failed
	Reason string // why it ended
}

// Event is an event of the session's event log.
type Event struct {
	Age      time.Duration
	Source   string // gateway, agent or service
	Type     string
	Host     string // of the target, with or without a port
	Status   int    // 0: none
	Code     string // of a refusal of the gateway
	HowToFix string
	Bytes    int64
}

// Certainty is how sure a cause is.
type Certainty string

// The certainties.
const (
	Certain  Certainty = "certain"
	Likely   Certainty = "likely"
	Possible Certainty = "possible"
)

// Cause is why a request may have failed.
type Cause struct {
	Name      string    `json:"cause"`
	What      string    `json:"what"`
	Certainty Certainty `json:"certainty"`
	Evidence  []string  `json:"evidence"`
	Do        string    `json:"what_to_do"`
	Retry     bool      `json:"retry"` // whether the same request may succeed without a change

	points int
}

// The weight of evidence. A client's text that only one cause has is enough, a status and an event of
// the event log are together.
const (
	ofState    = 250
	ofSureText = 90
	ofText     = 45
	ofStatus   = 30
	ofEvent    = 50 // the newest that the gateway observed
	ofOlder    = 20
	ofSupport  = 20
	ofSilence  = 10
	ofHost     = 10
	against    = -60

	certain  = 80
	likely   = 45
	possible = 25
)

const (
	// window is how long an event counts as evidence of a failure.
	window = 10 * time.Minute
	// fresh is how long an event that is not the newest counts in full.
	fresh = 2 * time.Minute
	// mostCauses bounds an answer.
	mostCauses = 4
)

// Causes returns the causes of a failure, the most certain first; at least one.
func Causes(seen Observation, s Session, newestFirst []Event) []Cause {
	f := read(seen, s, newestFirst)
	var list []Cause
	for i := range rules {
		if c := f.classify(&rules[i]); c.points >= possible {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Cause) int { return cmp.Compare(b.points, a.points) })
	if len(list) == 0 {
		return []Cause{f.unknown()}
	}
	if list[0].Certainty == Certain { // what is merely possible would confuse
		list = slices.DeleteFunc(list, func(c Cause) bool { return c.Certainty == Possible })
	}
	return list[:min(len(list), mostCauses)]
}

// facts are what is known of a failure.
type facts struct {
	Observation
	session  Session
	text     string
	answered bool // the text has an answer of the proxy
	byProxy  bool // the text blames the proxy
	waited   bool // the client gave up waiting: what refuses at once is not the cause
	gateway  []Event
	agent    []Event
}

// proxyStatus finds the status of a refused CONNECT in the texts of clients: curl; Python; undici;
// Node's proxy agents, which quote the line of the answer.
var proxyStatus = regexp.MustCompile(`(?i)(?:tunnel failed, response|from proxy after connect|` +
	`tunnel connection failed:|proxy response \(|!== 200 when HTTP Tunneling \(|HTTP code|status code|` +
	`proxy responded with|HTTP/1\.[01]"?) ?(\d{3})`)

// refusal finds that the proxy refused a tunnel: clients give its status, or the code that the gateway
// begins its reason with.
var refusal = regexp.MustCompile(`(?i)tunnel (connection )?failed|tunnel_connection_failed|when HTTP Tunneling|` +
	`proxy response|from proxy after|(?-i:\b[A-Z]{3,}_[A-Z_]{3,}: )`)

// ofProxy finds that the proxy is to blame, whether it answered or not.
var ofProxy = regexp.MustCompile(`(?i)proxyerror|proxyconnect|cannot connect to proxy`)

func read(seen Observation, s Session, events []Event) facts {
	f := facts{Observation: seen, session: s, text: seen.Error, answered: refusal.MatchString(seen.Error)}
	f.byProxy = f.answered || ofProxy.MatchString(seen.Error)
	f.waited = !f.answered && timedOut.MatchString(seen.Error)
	if m := proxyStatus.FindStringSubmatch(seen.Error); m != nil && f.Status == 0 {
		f.Status, _ = strconv.Atoi(m[1]) // three digits
	}
	for _, e := range events {
		switch {
		case e.Age > window:
		case e.Source == "gateway":
			f.gateway = append(f.gateway, e)
		case e.Source == "agent":
			f.agent = append(f.agent, e)
		}
	}
	return f
}

// classify adds up the evidence for a rule and against it.
func (f *facts) classify(r *rule) Cause {
	c := Cause{Name: r.name, What: r.what, Do: r.do, Retry: r.retry, Evidence: []string{}}
	add := func(points int, evidence string) {
		c.points += points
		if evidence != "" {
			c.Evidence = append(c.Evidence, evidence)
		}
	}
	if r.state != nil && r.state(f.session) {
		add(ofState, "the session is "+f.session.Status)
	}
	f.classifyText(r, add)
	f.classifyStatus(r, add)
	if len(r.codes) > 0 {
		f.classifyRefusals(r, add)
	}
	switch {
	case r.place == target:
		f.classifyTarget(r, add)
	case r.place == client && f.answered && len(r.codes) == 0:
		add(against, "")
	case r.place == client && len(f.gateway) > 0 && f.gateway[0].Age < fresh/4:
		add(against/2, "")
	case r.place == client && c.points > 0:
		add(ofSilence, "the gateway saw no connection of this session in the last half minute")
	}
	switch {
	case c.points >= certain:
		c.Certainty = Certain
	case c.points >= likely:
		c.Certainty = Likely
	default:
		c.Certainty = Possible
	}
	return c
}

func (f *facts) classifyText(r *rule, add func(int, string)) {
	for _, code := range r.codes {
		message := r.message == "" || strings.Contains(f.text, r.message)
		if strings.Contains(f.text, code) && message && (!r.ipv6 || slices.ContainsFunc(f.gateway, r.refuses)) {
			add(ofSureText, "the client's error has the code "+code)
			return
		}
	}
	switch {
	case f.text == "":
	case r.sure != nil && r.sure.MatchString(f.text):
		add(ofSureText, "the client's error proves it")
	case r.text != nil && r.text.MatchString(f.text):
		add(ofText, "the client's error fits")
	}
	if r.browsers && f.Client != "" && !browser.MatchString(f.Client) {
		add(against, "")
	} else if r.browsers && f.Client != "" {
		add(ofSupport, "the client is a browser")
	}
}

// browser finds the names of browsers and of what drives them.
var browser = regexp.MustCompile(`(?i)chrom|playwright|puppeteer|selenium|firefox|webdriver|browser|crawl4ai`)

// http407 is a status that no target answers through the gateway.
const http407 = 407

// http504 is the status of the gateway's own timeouts.
const http504 = 504

func (f *facts) classifyStatus(r *rule, add func(int, string)) {
	switch {
	case f.Status == 0:
	case f.Status == http407 && slices.Contains(r.statuses, http407):
		add(ofSureText, "the status 407 is the proxy's")
	case slices.Contains(r.statuses, f.Status):
		add(ofStatus, "the status "+strconv.Itoa(f.Status)+" fits")
	case len(r.statuses) > 0:
		add(against, "")
	}
}

// classifyRefusals looks for the refusals of a rule among the gateway's events.
func (f *facts) classifyRefusals(r *rule, add func(int, string)) {
	for i, e := range f.gateway {
		if !r.refuses(e) {
			continue
		}
		evidence := "the gateway answered " + e.Code + " " + ago(e.Age) + named(e.Host)
		points := ofOlder
		switch {
		case f.elsewhere(e) || f.waited && !slices.Contains(r.statuses, http504):
			points = ofOlder / 2
		case f.newest(i):
			points = ofEvent
		case e.Age > fresh:
			points = ofOlder / 2
		}
		if name := hostOf(e.Host); name != "" && strings.Contains(f.text, name) {
			points += ofHost
		}
		add(points, evidence)
		return
	}
}

// elsewhere reports whether an event is known to be about another target than the one that failed.
func (f *facts) elsewhere(e Event) bool {
	return f.Host != "" && e.Host != "" && !strings.EqualFold(hostOf(f.Host), hostOf(e.Host))
}

// newest reports whether no event is clearly newer than the i-th: what happens together is stored
// in any order.
func (f *facts) newest(i int) bool { return f.gateway[i].Age-f.gateway[0].Age < time.Second }

// classifyTarget looks for a connection that was open when the target, or the client behind it, failed.
func (f *facts) classifyTarget(r *rule, add func(int, string)) {
	if f.byProxy {
		if len(r.codes) == 0 {
			add(against, "")
		}
		return
	}
	for _, e := range f.agent {
		if e.Age <= fresh && slices.Contains(r.reports, e.Type) {
			add(ofText, "it was reported "+ago(e.Age)+named(e.Host))
			break
		}
	}
	if len(f.gateway) == 0 {
		return
	}
	e := f.gateway[0]
	switch {
	case e.Code != "" || e.Age > fresh || f.elsewhere(e):
	case e.Type == "request" && slices.Contains(r.statuses, e.Status):
		add(ofEvent, "the target answered "+strconv.Itoa(e.Status)+" "+ago(e.Age)+named(e.Host))
	case e.Type == "tunnel":
		moved := " moved " + strconv.FormatInt(e.Bytes, 10) + " bytes "
		add(ofSupport, "a connection"+named(e.Host)+" was open and"+moved+ago(e.Age))
	}
}

// unknown returns the cause of what no rule explains.
func (f *facts) unknown() Cause {
	c := Cause{Name: "unknown", What: "nothing that is known explains the failure", Certainty: Possible, Retry: true,
		Do: "try the session's own check; if it works the fault is at the target or in the client, else rotate"}
	c.Evidence = []string{"the gateway saw nothing fail in the last 10 minutes"}
	if len(f.gateway) > 0 && f.gateway[0].Code != "" {
		e := f.gateway[0]
		c.Evidence = []string{"the gateway answered " + e.Code + " " + ago(e.Age) + named(e.Host)}
		c.Do = cmp.Or(e.HowToFix, c.Do)
	}
	return c
}

// captcha finds that a page or an error is about a captcha.
var captcha = oneOf(captchaTexts...)

// LooksBlocked reports whether a target's answer refuses the exit rather than the request.
func LooksBlocked(status int, body string) bool {
	return status == 403 || status == 429 || status == 451 || captcha.MatchString(body)
}

// ago words an age.
func ago(age time.Duration) string {
	if age < time.Minute {
		return strconv.Itoa(max(int(age/time.Second), 0)) + " s ago"
	}
	return strconv.Itoa(int(age/time.Minute)) + " min ago"
}

// named words a target for a sentence; a host that cannot be one is left out.
func named(host string) string {
	if name := hostOf(host); name != "" {
		return " for " + name
	}
	return ""
}

var hostText = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]{1,253}$`)

// hostOf returns the host without its port.
func hostOf(host string) string {
	if !hostText.MatchString(host) {
		return ""
	}
	if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	return host
}

// isIPv6 reports whether a host is an IPv6 address.
func isIPv6(host string) bool {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		p, err := netip.ParseAddrPort(host)
		return err == nil && p.Addr().Is6()
	}
	return a.Is6() && !a.Is4In6()
}
