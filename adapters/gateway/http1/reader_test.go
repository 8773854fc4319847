package http1_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
)

// socks5Version is the first byte of a SOCKS5 connection, which Peek shows.
const socks5Version = 0x05

func TestAReader(t *testing.T) {
	t.Parallel()
	t.Run("peeks without consuming", func(t *testing.T) {
		r := http1.NewReader(strings.NewReader("\x05abc"))
		first, err := r.Peek(1)
		if err != nil || first[0] != socks5Version {
			t.Fatalf("%q, %v", first, err)
		}
		if got, _ := io.ReadAll(r); string(got) != "\x05abc" {
			t.Errorf("then read %q", got)
		}
	})
	t.Run("peeks at what there is", func(t *testing.T) {
		if got, err := http1.NewReader(strings.NewReader("ab")).Peek(3); string(got) != "ab" || err != io.EOF {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("cannot peek beyond 32 KiB", func(t *testing.T) {
		r := http1.NewReader(strings.NewReader(strings.Repeat("x", 64<<10)))
		if got, err := r.Peek(32<<10 + 1); len(got) != 32<<10 || err != io.ErrShortBuffer {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("returns an error after the bytes that came with it", func(t *testing.T) {
		for range 2 {
			r := http1.NewReader(iotest.DataErrReader(strings.NewReader("ab")))
			if got, err := r.Peek(1); err != nil || string(got) != "a" {
				t.Fatalf("%q, %v", got, err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != "ab" {
				t.Errorf("%q, %v", got, err)
			}
		}
	})
	t.Run("goes on after a timeout", func(t *testing.T) {
		r := http1.NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("ab"))))
		if _, err := r.Peek(2); !errors.Is(err, iotest.ErrTimeout) {
			t.Fatal(err)
		}
		if got, err := r.Peek(2); err != nil || string(got) != "ab" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("gives up on a source that gives nothing", func(t *testing.T) {
		if _, err := http1.NewReader(silent{}).Peek(1); err != io.ErrNoProgress {
			t.Error(err)
		}
	})
	t.Run("forgets on Reset and Free", func(t *testing.T) {
		r := http1.NewReader(strings.NewReader("old"))
		_, _ = r.Peek(1)
		r.Reset(strings.NewReader("new"))
		if got, _ := r.Peek(3); string(got) != "new" {
			t.Errorf("after Reset %q", got)
		}
		r.Discard(1)
		if got := r.Buffered(); string(got) != "ew" {
			t.Errorf("after Discard %q", got)
		}
		if r.Free(); len(r.Buffered()) != 0 {
			t.Errorf("after Free %q", r.Buffered())
		}
	})
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestAConnectCostsOneAllocation(t *testing.T) {
	r := http1.NewReader(again{[]byte(connectRequest)})
	var h http1.RequestHead
	var target hostport.Target
	n := testing.AllocsPerRun(100, func() {
		if err := http1.ReadRequest(r, &h); err != nil {
			t.Fatal(err)
		}
		target = h.Target()
		h.Credentials()
	})
	if n > 1 || target.Host != "www.example.com" {
		t.Errorf("%v allocations for %v", n, target)
	}
}

func TestAPlainRequestAndItsAnswerCostNoAllocation(t *testing.T) {
	in := http1.NewReader(again{[]byte(browserRequest)})
	out := http1.NewReader(again{[]byte(originResponse + strings.Repeat("x", 1024))})
	var req http1.RequestHead
	var resp http1.ResponseHead
	buf := make([]byte, 0, 4096)
	n := testing.AllocsPerRun(100, func() {
		err := http1.ReadRequest(in, &req)
		_, err1 := http1.CopyRequest(io.Discard, req.Append(buf), in, req.Body, nil)
		err2 := http1.ReadFinal(out, &resp, req.Exchange(), nil)
		_, err3 := http1.CopyResponse(io.Discard, resp.Append(buf, false), out, resp.Body, nil)
		if err := errors.Join(err, err1, err2, err3); err != nil {
			t.Fatal(err)
		}
	})
	if n >= 1 { // under -race pools drop some buffers
		t.Errorf("%v allocations", n)
	}
}
