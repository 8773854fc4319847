package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
	"agentproxy/test/freeport"
	"agentproxy/test/pg"
	"agentproxy/test/syncbuffer"
)

// program, apx, nethttp and goclient are the paths of the built commands, and of three examples.
var program, apx, nethttp, goclient, waitpaid string

// clockSkew names the environment variable with the time by which the clock of the built program is ahead.
const clockSkew = "TEST_CLOCK_SKEW"

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "agentproxy-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program, apx = filepath.Join(dir, "agentproxy"), filepath.Join(dir, "apx")
		nethttp, goclient = filepath.Join(dir, "nethttp"), filepath.Join(dir, "goclient")
		waitpaid = filepath.Join(dir, "waitpaid")
		args := append([]string{"build", "-ldflags=-s -w -X agentproxy/adapters/system.skewFrom=" + clockSkew, "-o", dir}, buildFlags...)
		args = append(args, "agentproxy/cmd/agentproxy", "agentproxy/cmd/apx", "agentproxy/examples/nethttp", "agentproxy/examples/goclient",
			"agentproxy/examples/waitpaid")
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		flag.Parse()
		// A test waits half of its time. Four more of them than there are processors leave
		// few of these idle, and starve no browser whose client gives up after 30 s.
		if err := flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+4)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return max(m.Run(), endShared())
	}())
}

// service is one running program and its database.
type service struct {
	t       *testing.T
	dir     string
	api     string // host:port
	gateway string
	admin   string
	env     []string
	wrap    func(*exec.Cmd) // changes how the program is started; nil for nothing

	pressedBy func(*http.Request) // who presses buttons of the admin pages; nil: the operator

	cmd   *exec.Cmd
	ended chan error // how cmd has ended
	log   *syncbuffer.Buffer

	others bool // other tests use the program too; it is stopped, and its ledger is verified, when all have ended
}

// secret is the root secret where there is no file to keep one beside.
const secret = "AGENTPROXY_SECRET=for-tests-only-0123456789abcdefghijklmnop"

// onEachStore runs a test on every database, whose variables it passes.
func onEachStore(t *testing.T, test func(t *testing.T, store ...string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { test(t) })
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(pg.Database(t))...) })
}

// onPostgres returns the variables for a database. It asks for development mode,
// which PostgreSQL does not imply, because targets and receivers are on loopback.
func onPostgres(url string) []string {
	return []string{"AGENTPROXY_DATABASE_URL=" + url, secret, "AGENTPROXY_DEV=true"}
}

// adminPassword is the credential of the admin listener of these tests.
const adminPassword = "the operator of these tests"

// serve starts the program on a new database, with more variables if given, and
// stops it when the test ends.
func serve(t *testing.T, env ...string) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), api: freeport.Address(t), gateway: freeport.Address(t), admin: freeport.Address(t), env: env}
	s.start()
	t.Cleanup(s.stop)
	return s
}

// lookAtSources touches what the program is built of, so that go test does not take
// an old result from its cache for that of a changed program.
var lookAtSources = sync.OnceFunc(func() {
	_ = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, _ error) error {
		if ext := filepath.Ext(path); ext == ".go" || ext == ".sql" {
			_, _ = os.Stat(path)
		}
		return nil
	})
})

func (s *service) command(args ...string) *exec.Cmd {
	lookAtSources()
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AGENTPROXY_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "AGENTPROXY_HTTP_ADDR="+s.api, "AGENTPROXY_GATEWAY_ADDR="+s.gateway,
		"AGENTPROXY_ADMIN_ADDR="+s.admin, "AGENTPROXY_ADMIN_PASSWORD="+adminPassword, "AGENTPROXY_DRAIN_DELAY_SECONDS=0")
	cmd.Env = append(append(cmd.Env, exitsOutsideDevelopment(s.env)...), s.env...)
	return cmd
}

// begin runs the program.
func (s *service) begin() {
	s.t.Helper()
	s.cmd = s.command("serve")
	if s.wrap != nil {
		s.wrap(s.cmd)
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	ok(s.t, s.cmd.Start())
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(s.cmd, s.ended)
}

// start runs the program and waits until it answers. It is run again, as by a supervisor, if a machine with too much
// to do did not let the database answer it in time.
func (s *service) start() {
	s.t.Helper()
	s.log = &syncbuffer.Buffer{}
	s.begin()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-s.ended:
			if !strings.Contains(s.log.String(), unreachable) {
				s.t.Fatalf("the service ended with %v; it printed:\n%s", err, s.log)
			}
			s.begin()
		default:
		}
		resp, err := http.Get("http://" + s.api + "/v1/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	_ = s.cmd.Process.Kill()
	s.t.Fatalf("the service does not answer; it printed:\n%s", s.log)
}

// logs waits until the program has printed a text: what it prints arrives after what it answered then.
func (s *service) logs(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("it printed:\n%s", s.log)
		}
	}()
	within(s.t, soon, "the log has "+text, func() bool { return strings.Contains(s.log.String(), text) })
}

// unreachable is printed by a program that ends because the database did not answer in time.
const unreachable = "the PostgreSQL server cannot be reached"

// stop ends the program as an operator would.
func (s *service) stop() {
	if s.cmd == nil {
		return
	}
	s.alone()
	if err := s.end(); err != nil {
		s.t.Error(err)
	}
}

// alone fails a test that ends what other tests use.
func (s *service) alone() {
	s.t.Helper()
	if s.others {
		s.t.Fatal("other tests use this program")
	}
}

// end stops the program and returns what was wrong with its end.
func (s *service) end() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	cmd := s.cmd
	s.cmd = nil
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("the service ended with %v; it printed:\n%s", err, s.log)
		}
	case <-time.After(soon):
		_ = cmd.Process.Kill()
		return fmt.Errorf("the service did not stop within %v; it printed:\n%s", soon, s.log)
	}
	if out := s.log.String(); strings.Contains(out, "DATA RACE") {
		return fmt.Errorf("the service has a data race:\n%s", out)
	}
	return nil
}

// run runs an operator's command beside the service.
func (s *service) run(args ...string) (string, error) {
	out, err := s.command(args...).CombinedOutput()
	return string(out), err
}

// done is like run, and repeats a command that the database did not answer in time, which then did nothing.
func (s *service) done(args ...string) (out string, err error) {
	for deadline := time.Now().Add(soon); ; {
		out, err = s.run(args...)
		if err == nil || !strings.Contains(out, unreachable) || time.Now().After(deadline) {
			return out, err
		}
	}
}

// verify proves the ledger by the operator's command.
func (s *service) verify() {
	s.t.Helper()
	if s.others {
		return
	}
	if out, err := s.done("verify"); err != nil {
		s.t.Errorf("verify: %v\n%s", err, out)
	}
}

// reply is one answer of the API.
type reply struct {
	status int
	header http.Header
	body   []byte
	Data   json.RawMessage
	Error  *struct {
		Code    string
		Message string
		Details map[string]any
	}
}

func (r reply) code() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// into reads data into v.
func (r reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Data, v); err != nil {
		t.Fatalf("reading %s: %v", r.body, err)
	}
}

// call sends one request. Headers come in pairs. A transport error is returned:
// the program may have been killed.
func (s *service) call(ctx context.Context, method, path, key, body string, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.api+"/v1"+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return r, err
	}
	r.body = b.Bytes()
	if err := json.Unmarshal(r.body, &r); err != nil {
		return r, fmt.Errorf("%s %s: no envelope: %s", method, path, r.body)
	}
	return r, nil
}

// patient is like call, and repeats a call that a busy database had no time for, as the answer 503 asks
// for. The call must have an Idempotency-Key if it changes something that is counted.
func (s *service) patient(ctx context.Context, method, path, key, body string, headers ...string) (reply, error) {
	for repeats := 0; ; time.Sleep(time.Second) {
		r, err := s.call(ctx, method, path, key, body, headers...)
		if err != nil || r.code() != "SERVICE_UNAVAILABLE" || r.header.Get("Retry-After") == "" || repeats == 10 {
			return r, err
		}
		repeats++
		s.t.Logf("%s %s: the database is busy", method, path)
	}
}

// must is like patient, and fails the test on another status.
func (s *service) must(status int, method, path, key, body string, headers ...string) reply {
	s.t.Helper()
	call := s.patient
	if status == http.StatusServiceUnavailable {
		call = s.call
	}
	r, err := call(s.t.Context(), method, path, key, body, headers...)
	if err != nil {
		s.t.Fatal(err)
	}
	if r.status != status {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, r.status, status, r.body)
	}
	return r
}

// register opens an account and returns its key and id.
func (s *service) register(name string) (key, id string) {
	s.t.Helper()
	var a struct {
		APIKey  string `json:"api_key"`
		AgentID string `json:"agent_id"`
	}
	s.must(201, "POST", "/account/register", "", `{"name":"`+name+`"}`).into(s.t, &a)
	return a.APIKey, a.AgentID
}

// session reads one session.
func (s *service) session(key, id string) apiclient.Session {
	s.t.Helper()
	var d apiclient.Session
	s.must(200, "GET", "/sessions/"+id, key, "").into(s.t, &d)
	return d
}

// text returns a text that may be null, "" if it is.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// soon is long enough for whatever has to happen, on any machine.
const soon = 3 * time.Minute

// within waits until ok, and fails the test after limit.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	// The interval grows: ok may send a request, and those are limited to one a second.
	wait := 20 * time.Millisecond
	for deadline := time.Now().Add(limit); ; time.Sleep(wait) {
		if ok() {
			return
		}
		wait = min(wait*11/10, time.Second)
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// promised waits until ok, for which a bound is documented. A machine with much to do may not keep it, so only
// a campaign fails after limit, where a late result has once more the time that twenty requests take which wait
// for nothing.
func (s *service) promised(limit time.Duration, what string, ok func() bool) {
	s.t.Helper()
	if campaign.Rounds(0, 1) == 0 {
		within(s.t, soon, what, ok)
		return
	}
	began, measured := time.Now(), false
	deadline := began.Add(limit)
	for wait := 20 * time.Millisecond; !ok(); time.Sleep(wait) {
		wait = min(wait*11/10, 200*time.Millisecond)
		if time.Now().Before(deadline) {
			continue
		}
		if measured {
			s.t.Fatalf("%s: not within %v, but not after %v either", what, limit, time.Since(began))
		}
		asked := time.Now()
		for range 20 {
			s.must(200, "GET", "/health", "", "")
		}
		deadline, measured = time.Now().Add(time.Since(asked)), true
	}
}
