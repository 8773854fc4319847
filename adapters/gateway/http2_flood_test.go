package gateway_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames is a client that sends frames of its own.
type frames struct {
	t *testing.T
	*http2.Framer
	c   *tls.Conn
	b   bytes.Buffer
	enc *hpack.Encoder
}

func (w *world) frames(t *testing.T) *frames {
	t.Helper()
	f := &frames{t: t, c: w.dialTLS(trusting("h2"))}
	f.Framer, f.enc = http2.NewFramer(f.c, f.c), hpack.NewEncoder(&f.b)
	_, _ = io.WriteString(f.c, http2.ClientPreface)
	_ = f.WriteSettings()
	return f
}

func (f *frames) block(fields ...string) []byte {
	f.b.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return f.b.Bytes()
}

// many returns a frame a hundred times, to be written at once.
func (f *frames) many(write func(*http2.Framer)) []byte {
	var b bytes.Buffer
	for range 100 {
		write(http2.NewFramer(&b, nil))
	}
	return b.Bytes()
}

// connect opens a stream.
func (f *frames) connect(id uint32, auth, target string) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true,
		BlockFragment: f.block(":method", "CONNECT", ":authority", target, "proxy-authorization", auth)})
}

// until reads frames until one that f accepts, and returns the error of the connection otherwise.
func (f *frames) until(accept func(http2.Frame) bool) error {
	for {
		got, err := f.ReadFrame()
		if err != nil || accept(got) {
			return err
		}
	}
}

// Extended CONNECT is refused by a reset, and the connection goes on.
func TestExtendedConnectIsRefused(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	id := w.add(1, 0)
	f := w.frames(t)
	auth := basicValue(user(id, 0), password(id))
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: f.block(":method", "CONNECT",
		":protocol", "websocket", ":scheme", "http", ":path", "/", ":authority", "127.0.0.1:80", "proxy-authorization", auth)})
	f.connect(3, auth, echo(t))
	reset := false
	err := f.until(func(got http2.Frame) bool {
		if r, ok := got.(*http2.RSTStreamFrame); ok && r.StreamID == 1 {
			reset = true
		}
		h, ok := got.(*http2.HeadersFrame)
		return ok && h.StreamID == 3
	})
	if err != nil || !reset {
		t.Errorf("reset %v, %v", reset, err)
	}
}

// What one client can make the gateway do or keep is bounded: each of these floods ends its connection or is answered
// within bounds, and other clients are served.
func TestFloodsOfFramesAreBounded(t *testing.T) {
	w := begin(t, newCore(t), func(s *setup) { certified(s); lingers(s) })
	id, target := w.add(1, 0), echo(t)
	auth := basicValue(user(id, 0), password(id))
	other := w.connect(id, target)
	ended := func(name string, f *frames, flood func(n int) error) {
		t.Helper()
		for n := range 100_000 {
			if flood(n) != nil {
				return
			}
		}
		t.Errorf("%s: the connection goes on", name)
		_ = f.c.Close()
	}
	f := w.frames(t)
	ended("CONTINUATION without an end", f, func(n int) error {
		if n == 0 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.block(":method", "CONNECT", ":authority", target)})
		}
		return f.WriteContinuation(1, false, f.block("x-more", strings.Repeat("x", 8000)))
	})
	f = w.frames(t) // which reads no answer: acknowledgements are made once, however many are due
	heap := heapNow()
	many := f.many(func(f *http2.Framer) { _ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}) })
	for range 1000 {
		if _, err := f.c.Write(many); err != nil {
			break
		}
	}
	keeps(t, "SETTINGS", heap, 4<<20)
	_ = f.c.Close()
	f = w.frames(t)
	many = f.many(func(f *http2.Framer) { _ = f.WritePing(false, [8]byte{}) })
	ended("PING", f, func(int) error { _, err := f.c.Write(many); return err })
	f = w.frames(t) // ends when more requests wait than are served at once, which a fast gateway does not reach
	heap, running := heapNow(), runtime.NumGoroutine()
	for n := range uint32(5000) {
		f.connect(2*n+1, auth, "127.0.0.1:1")
		if f.WriteRSTStream(2*n+1, http2.ErrCodeCancel) != nil {
			break
		}
		if more := runtime.NumGoroutine() - running; more > 4*256 {
			t.Fatalf("rapid resets: %d goroutines more", more)
		}
	}
	_ = f.c.Close()
	keeps(t, "rapid resets", heap, 16<<20)
	f = w.frames(t)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: f.block(":method", "GET",
		":scheme", "http", ":authority", target, ":path", "/", "x-bomb", strings.Repeat("y", 10_000))})
	bomb := f.block(":method", "GET", ":scheme", "http", ":authority", target, ":path", "/")
	for range 2000 { // references to a long field: few bytes, 20 MB of fields
		bomb = append(bomb, 0x80|62)
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndHeaders: true, EndStream: true, BlockFragment: bomb})
	if err := f.until(func(got http2.Frame) bool {
		h, ok := got.(*http2.HeadersFrame)
		r, reset := got.(*http2.RSTStreamFrame)
		return ok && h.StreamID == 3 || reset && r.StreamID == 3
	}); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("a header bomb: %v", err)
	}
	_ = f.c.Close()
	if err := ping(other); err != nil {
		t.Errorf("another client: %v", err)
	}
	waitFor(t, "the connections to end", func() bool { return w.Stats().Connections == 1 })
}

// keeps waits until no more than a number of bytes are kept beyond what was in use before: while frames are read, some
// of what they took is not collected yet.
func keeps(t *testing.T, what string, before, most int64) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%s to keep at most %d bytes", what, most), func() bool { return heapNow()-before <= most })
}

// heapNow returns the memory in use.
func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A client that never opens its windows costs what is on its way, not what its targets send.
func TestAClientThatOpensNoWindowCostsLittle(t *testing.T) {
	w := begin(t, newCore(t), certified)
	id, target := w.add(1, 0), newCounting(t)
	auth := basicValue(user(id, 0), password(id))
	f := w.frames(t)
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	before := heapNow()
	const streams = 200
	for n := range streams {
		f.connect(uint32(2*n+1), auth, target.addr())
		_ = f.WriteData(uint32(2*n+1), false, order(0, 100<<20))
	}
	heads := 0
	if err := f.until(func(got http2.Frame) bool {
		if _, ok := got.(*http2.HeadersFrame); ok {
			heads++
		}
		if _, ok := got.(*http2.DataFrame); ok {
			t.Error("data beyond the window")
		}
		return heads == streams
	}); err != nil {
		t.Fatal(err)
	}
	stalled(t, target.out.Load)
	if each := (heapNow() - before) / streams; each > 96<<10 { // with the target's side
		t.Errorf("%d bytes a stream", each)
	}
	if u := w.usage(id); u.Down != 0 {
		t.Errorf("%d bytes are charged that the client did not get", u.Down)
	}
	_ = f.c.Close()
	waitFor(t, "the streams to end", func() bool { return w.Stats().Tunnels == 0 })
}

// Of one connection 256 streams are served at once.
func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { certified(s); s.Tunnels = 1000 })
	f := w.frames(t)
	err := f.until(func(got http2.Frame) bool {
		s, ok := got.(*http2.SettingsFrame)
		if !ok || s.IsAck() {
			return false
		}
		n, ok := s.Value(http2.SettingMaxConcurrentStreams)
		return ok && n == 256
	})
	if err != nil {
		t.Error(err)
	}
}

// When the gateway stops, streams finish within the time of tunnels, and no new one is served.
func TestStopDrainsStreams(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { certified(s); s.Timing.Drain = patience })
	id, target, c := w.add(1, 0), echo(t), w.streams()
	auth := basicValue(user(id, 0), password(id))
	s := w.tunnel(c, auth, target)
	idle := w.streams()
	stopped := make(chan error, 1)
	go func() { stopped <- w.Stop(t.Context()) }()
	waitFor(t, "the announcement", func() bool { return !c.CanTakeNewRequest() && idle.State().Closed })
	if err := echoed(s, []byte("until the end")); err != nil {
		t.Error(err)
	}
	_ = s.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A connection without streams ends like a kept one.
func TestAConnectionWithoutStreamsEnds(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { certified(s); s.Timing.Keep = 200 * time.Millisecond })
	f := w.frames(t)
	if err := f.until(func(http2.Frame) bool { return false }); errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	waitFor(t, "the connection to end", func() bool { return w.Stats().Connections == 0 })
}
