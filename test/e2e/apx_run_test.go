package e2e_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRunGoesThroughTheSessionOrNotAtAll runs programs with a session's proxy, and none without a session.
func TestRunGoesThroughTheSessionOrNotAtAll(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	need(t, "curl", err)
	s := shared(t)
	home := t.TempDir()
	out, err := s.shell(home, `
		apx register >/dev/null
		S=$(apx buy dyn_fast_1 --gb 0.1 --max-cost 1 | cut -f1)
		export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 http_proxy=http://127.0.0.1:1
		apx check $S | cut -f1
		apx run $S -- curl -sf http://`+s.api+`/v1/ip
		apx run $S sh -c 'curl -sf http://`+s.api+`/v1/ip'
		apx run $S --worker w1 -- curl -sf http://`+s.api+`/v1/ip
		apx run $S -- sh -c 'echo "node $NODE_USE_ENV_PROXY $#"' - a --worker 'b c'
		apx run $S -- sh -c 'exit 7' || echo "status $?"
		apx run $S -- sh -c 'kill -TERM $$' || echo "status $?"
		echo asked | apx run $S -- cat
		printf %s $S > $HOME/session`)
	exit, rest, _ := strings.Cut(out, "\n")
	if err != nil || exit == "" || strings.Count(rest, `"ip":"`+exit+`"`) != 2 || strings.Count(rest, `"ip":"127.`) != 3 ||
		strings.Contains(rest, `"127.0.0.1"`) {
		t.Errorf("%v; want the exit %s twice and another of a worker:\n%s", err, exit, out)
	}
	for _, want := range []string{"node 1 3\n", "status 7\n", "status 143\n", "asked\n"} {
		if !strings.Contains(rest, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	t.Run("a signal", func(t *testing.T) { s.endsBySignal(home) })
	started := filepath.Join(home, "started")
	for script, want := range map[string]string{
		`apx run sess_none -- touch ` + started:                                                           "exit status 1: apx: SESSION_NOT_FOUND",
		`apx run $(cat $HOME/session) -- no-such-program`:                                                 "exit status 2: apx: misuse: exec: ",
		`apx run $(cat $HOME/session) --`:                                                                 "exit status 2: apx: ",
		`apx end $(cat $HOME/session) --yes >/dev/null; apx run $(cat $HOME/session) -- touch ` + started: "exit status 1: apx: SESSION_EXPIRED",
	} {
		if out, err := s.shell(home, script); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s\n%s", script, err, want, out)
		}
	}
	if _, err := os.Stat(started); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program was started without a session: %v", err)
	}
}

// endsBySignal sends a signal to apx, which the program that it runs must get.
func (s *service) endsBySignal(home string) {
	s.t.Helper()
	id, err := os.ReadFile(filepath.Join(home, "session"))
	succeeds(s.t, err)
	cmd := exec.CommandContext(s.t.Context(), apx, "run", string(id), "--", "sh", "-c",
		`trap "echo caught; exit 9" TERM; echo ready; read line`)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "AGENTPROXY_URL=http://" + s.api}
	in, err := cmd.StdinPipe()
	succeeds(s.t, err)
	out, err := cmd.StdoutPipe()
	succeeds(s.t, err)
	succeeds(s.t, cmd.Start())
	defer in.Close()
	lines := bufio.NewReader(out)
	ready, err := lines.ReadString('\n')
	succeeds(s.t, err)
	succeeds(s.t, cmd.Process.Signal(syscall.SIGTERM))
	caught, _ := lines.ReadString('\n')
	if err := cmd.Wait(); ready != "ready\n" || caught != "caught\n" || cmd.ProcessState.ExitCode() != 9 {
		s.t.Errorf("it printed %q and %q, and ended with %v", ready, caught, err)
	}
}
