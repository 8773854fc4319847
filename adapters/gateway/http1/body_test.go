package http1_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentproxy/adapters/gateway/http1"
)

var errSpent = errors.New("spent")

// allowance grants left bytes, at most step at a time.
type allowance struct{ left, step int }

func (a *allowance) Take(n int) (int, error) {
	if a.left == 0 {
		return 0, errSpent
	}
	n = min(n, a.left, a.step)
	a.left -= n
	return n, nil
}

func (a *allowance) Return(n int) { a.left += n }

// copies is CopyRequest or CopyResponse.
type copies func(io.Writer, []byte, *http1.Reader, http1.Body, http1.Meter) (http1.Moved, error)

const head = "HEAD\r\n\r\n"

func TestBodiesAreMovedWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 8<<10) // 128 KiB
	for _, tc := range []struct {
		name     string
		body     http1.Body
		in, want string
	}{
		{"none", http1.Body{}, "", ""},
		{"sized", http1.Body{Kind: http1.Sized, Length: 5}, "hello", "hello"},
		{"sized and empty", http1.Body{Kind: http1.Sized}, "", ""},
		{"sized and long", http1.Body{Kind: http1.Sized, Length: int64(len(long))}, long, long},
		{"until close", http1.Body{Kind: http1.UntilClose}, long, long},
		{"until close and empty", http1.Body{Kind: http1.UntilClose}, "", ""},
		{"chunked", http1.Body{Kind: http1.Chunked}, "5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"},
		{"chunked with capitals, zeros, extensions and trailers", http1.Body{Kind: http1.Chunked},
			"00A ;x=\"y\"\r\n0123456789\r\n1\r\na\r\n000;last\r\nX: y\r\nContent-Length: 3\r\n\r\n",
			"a\r\n0123456789\r\n1\r\na\r\n0\r\n\r\n"},
		{"chunks taken off", http1.Body{Kind: http1.Unchunked}, "5\r\nhello\r\n2;x\r\n!!\r\n0\r\n\r\n", "hello!!"},
		{"one long chunk taken off", http1.Body{Kind: http1.Unchunked}, "20000\r\n" + long + "\r\n0\r\n\r\n", long},
	} {
		for name, cp := range map[string]copies{"request": http1.CopyRequest, "response": http1.CopyResponse} {
			for _, slow := range []bool{false, true} {
				t.Run(tc.name+" as "+name, func(t *testing.T) {
					next := "GET /next"
					if tc.body.Kind == http1.UntilClose {
						next = ""
					}
					var src io.Reader = strings.NewReader(tc.in + next)
					if slow {
						src = iotest.OneByteReader(src)
					}
					r := http1.NewReader(src)
					if tc.in != "" {
						_, _ = r.Peek(1)
					}
					var out bytes.Buffer
					moved, err := cp(&out, []byte(head), r, tc.body, nil)
					if err != nil {
						t.Fatal(err)
					}
					if got, ok := strings.CutPrefix(out.String(), head); !ok || !slow && got != tc.want {
						t.Errorf("wrote %.80q, want %.80q", got, tc.want)
					}
					if moved.In != int64(len(tc.in)) || moved.Out != int64(out.Len()) {
						t.Errorf("counted %+v, want %d and %d", moved, len(tc.in), out.Len())
					}
					if rest, _ := io.ReadAll(r); string(rest) != next {
						t.Errorf("left %q, want %q", rest, next)
					}
				})
			}
		}
	}
}

func TestALongChunkIsCutButKeepsItsData(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	r := http1.NewReader(io.MultiReader(strings.NewReader("20000\r\n"), bytes.NewReader(long), strings.NewReader("\r\n0\r\n\r\n")))
	var chunks, data bytes.Buffer
	if _, err := http1.CopyRequest(&chunks, nil, r, http1.Body{Kind: http1.Chunked}, nil); err != nil {
		t.Fatal(err)
	}
	again := http1.NewReader(&chunks)
	if _, err := http1.CopyResponse(&data, nil, again, http1.Body{Kind: http1.Unchunked}, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data.Bytes(), long) {
		t.Errorf("%d bytes came out, want %d", data.Len(), len(long))
	}
}

// writes counts the calls of Write.
type writes struct{ sizes []int }

func (w *writes) Write(p []byte) (int, error) {
	w.sizes = append(w.sizes, len(p))
	return len(p), nil
}

func TestWhatIsAtHandIsOneWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body http1.Body
		in   string
	}{
		"sized":   {http1.Body{Kind: http1.Sized, Length: 5}, "hello"},
		"chunked": {http1.Body{Kind: http1.Chunked}, strings.Repeat("1\r\na\r\n", 100) + "0\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := http1.NewReader(strings.NewReader(tc.in))
			_, _ = r.Peek(1)
			var w writes
			if _, err := http1.CopyResponse(&w, []byte(head), r, tc.body, nil); err != nil || len(w.sizes) != 1 {
				t.Errorf("writes of %v, %v", w.sizes, err)
			}
		})
	}
}

func TestNothingWaitsWithinAChunk(t *testing.T) {
	t.Parallel()
	in, feed := io.Pipe()
	defer feed.Close()
	got := make(chan string)
	go func() {
		w := writerFunc(func(p []byte) (int, error) { got <- string(p); return len(p), nil })
		_, _ = http1.CopyResponse(w, nil, http1.NewReader(in), http1.Body{Kind: http1.Chunked}, nil)
		close(got)
	}()
	for _, step := range []struct{ in, out string }{
		{"64\r\nhello", "5\r\nhello\r\n"}, {" again", "6\r\n again\r\n"},
	} {
		_, _ = io.WriteString(feed, step.in)
		if out := <-got; out != step.out {
			t.Errorf("after %q came %q, want %q", step.in, out, step.out)
		}
	}
	feed.Close()
	for range got {
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestBrokenChunksAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in string }{
		{"no size", "\r\nhello\r\n0\r\n\r\n"},
		{"no hexadecimal size", "g\r\nhello\r\n0\r\n\r\n"},
		{"a sign", "+5\r\nhello\r\n0\r\n\r\n"},
		{"a minus", "-1\r\nhello\r\n0\r\n\r\n"},
		{"0x", "0x5\r\nhello\r\n0\r\n\r\n"},
		{"an underscore", "1_0\r\nhello\r\n0\r\n\r\n"},
		{"space before the size", " 5\r\nhello\r\n0\r\n\r\n"},
		{"a size of 16 digits", "0000000000000005\r\nhello\r\n0\r\n\r\n"},
		{"a size that overflows", "fffffffffffffffff\r\nhello"},
		{"text after the size", "5 x\r\nhello\r\n0\r\n\r\n"},
		{"a bare LF after the size", "5\nhello\r\n0\r\n\r\n"},
		{"a bare LF in an extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"},
		{"a bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"},
		{"a NUL in an extension", "5;\x00\r\nhello\r\n0\r\n\r\n"},
		{"an extension without end", "5;" + strings.Repeat("a", 300)},
		{"a long extension", "5;" + strings.Repeat("a", 300) + "\r\nhello\r\n0\r\n\r\n"},
		{"data longer than its size", "4\r\nhello\r\n0\r\n\r\n"},
		{"data shorter than its size", "6\r\nhello\r\n0\r\n\r\n"},
		{"a bare LF after the data", "5\r\nhello\n0\r\n\r\n"},
		{"CR and something else after the data", "5\r\nhello\rX0\r\n\r\n"},
		{"a bare LF at the end", "0\r\n\n"},
		{"a trailer without a colon", "0\r\nX\r\n\r\n"},
		{"a folded trailer", "0\r\nX: y\r\n z\r\n\r\n"},
		{"a NUL in a trailer", "0\r\nX: \x00\r\n\r\n"},
		{"long trailers", "0\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n"},
		{"many trailers", "0\r\n" + strings.Repeat("X:\r\n", 200) + "\r\n"},
		{"mostly framing", strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\nx\r\n", 100) + "0\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for want, cp := range map[int]copies{400: http1.CopyRequest, 502: http1.CopyResponse} {
				r := http1.NewReader(strings.NewReader(tc.in))
				_, err := cp(io.Discard, nil, r, http1.Body{Kind: http1.Chunked}, nil)
				var e *http1.CopyError
				if status(err) != want || !errors.As(err, &e) || e.Step != http1.Reading {
					t.Errorf("%v, want status %d while reading", err, want)
				}
			}
		})
	}
}

func TestPaddedChunkSizesPassInResponsesOnly(t *testing.T) {
	t.Parallel()
	const padded = "5   \r\nhello\r\n0  \r\n\r\n"
	for want, cp := range map[bool]copies{false: http1.CopyRequest, true: http1.CopyResponse} {
		_, err := cp(io.Discard, nil, http1.NewReader(strings.NewReader(padded)), http1.Body{Kind: http1.Chunked}, nil)
		if (err == nil) != want {
			t.Errorf("passed: %v, want %v", err == nil, want)
		}
	}
}

func TestAShortBodyIsUnexpected(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		body http1.Body
	}{
		{"hell", http1.Body{Kind: http1.Sized, Length: 5}},
		{"", http1.Body{Kind: http1.Chunked}},
		{"5\r\nhel", http1.Body{Kind: http1.Chunked}},
		{"5\r\nhello\r\n", http1.Body{Kind: http1.Chunked}},
		{"0\r\n", http1.Body{Kind: http1.Unchunked}},
	} {
		_, err := http1.CopyRequest(io.Discard, nil, http1.NewReader(strings.NewReader(tc.in)), tc.body, nil)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v", tc.in, err)
		}
	}
}

func TestAMessageSpoiledAtOnceIsWithheld(t *testing.T) {
	t.Parallel()
	r := http1.NewReader(strings.NewReader("nonsense\r\n"))
	_, _ = r.Peek(1)
	var out bytes.Buffer
	moved, err := http1.CopyResponse(&out, []byte(head), r, http1.Body{Kind: http1.Chunked}, nil)
	if status(err) != 502 || moved.Out != 0 || out.Len() != 0 {
		t.Errorf("%d bytes written, %+v, %v", out.Len(), moved, err)
	}
}

func TestACopyStopsAtItsAllowance(t *testing.T) {
	t.Parallel()
	const chunks = "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n"
	for name, tc := range map[string]struct {
		body http1.Body
		in   string
	}{
		"sized":       {http1.Body{Kind: http1.Sized, Length: 100}, strings.Repeat("x", 100)},
		"until close": {http1.Body{Kind: http1.UntilClose}, strings.Repeat("x", 100)},
		"chunked":     {http1.Body{Kind: http1.Chunked}, chunks},
		"unchunked":   {http1.Body{Kind: http1.Unchunked}, chunks},
	} {
		t.Run(name, func(t *testing.T) {
			for limit := range 140 {
				for _, step := range []int{1, 7, 1000} {
					stopsAtTheWrite(t, tc.body, tc.in, &allowance{limit, step})
					stopsAtTheRead(t, tc.body, tc.in, &allowance{limit, step})
				}
			}
		})
	}
}

func stopsAtTheWrite(t *testing.T, body http1.Body, in string, a *allowance) {
	t.Helper()
	limit := a.left
	var free, out bytes.Buffer
	_, _ = http1.CopyResponse(&free, []byte(head), http1.NewReader(strings.NewReader(in)), body, nil)
	moved, err := http1.CopyResponse(&out, []byte(head), http1.NewReader(strings.NewReader(in)), body, a)
	want := min(limit, free.Len())
	if out.String() != free.String()[:want] || moved.Out != int64(want) || a.left != limit-want {
		t.Fatalf("of %d bytes %d were written, counted %d, charged %d", limit, out.Len(), moved.Out, limit-a.left)
	}
	if spent := errors.Is(err, errSpent); spent != (limit < free.Len()) {
		t.Fatalf("with %d bytes of %d: %v", limit, free.Len(), err)
	}
}

func stopsAtTheRead(t *testing.T, body http1.Body, in string, a *allowance) {
	t.Helper()
	limit := a.left
	moved, err := http1.CopyRequest(io.Discard, []byte(head), http1.NewReader(strings.NewReader(in)), body, a)
	if moved.In != int64(limit-a.left) || moved.In > int64(limit) {
		t.Fatalf("of %d bytes %d were taken and %d charged", limit, moved.In, limit-a.left)
	}
	if spent := errors.Is(err, errSpent); spent != (limit < len(in)) {
		t.Fatalf("with %d bytes of %d: %v", limit, len(in), err)
	}
}

func TestBytesThatFailToBeWrittenAreGivenBack(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	a := &allowance{1000, 1000}
	w := writerFunc(func(p []byte) (int, error) { return 3, gone })
	moved, err := http1.CopyResponse(w, []byte(head), http1.NewReader(strings.NewReader("")), http1.Body{}, a)
	if !errors.Is(err, gone) || moved.Out != 3 || a.left != 997 {
		t.Errorf("%v, %+v, %d left", err, moved, a.left)
	}
	var e *http1.CopyError
	if !errors.As(err, &e) || e.Step != http1.Writing {
		t.Errorf("step %v", err)
	}
}

func TestAHeadIsTakenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	a := &allowance{10, 3}
	if err := http1.TakeAll(a, 11); err != errSpent || a.left != 10 {
		t.Errorf("%v, %d left", err, a.left)
	}
	if err := http1.TakeAll(a, 10); err != nil || a.left != 0 {
		t.Errorf("%v, %d left", err, a.left)
	}
	if err := http1.TakeAll(nil, 10); err != nil {
		t.Error(err)
	}
}

type brokenMeter struct{}

func (brokenMeter) Take(int) (int, error) { return 0, nil }
func (brokenMeter) Return(int)            {}

func TestAMeterThatGrantsNothingDoesNotHang(t *testing.T) {
	t.Parallel()
	r := http1.NewReader(strings.NewReader("hello"))
	if _, err := http1.CopyRequest(io.Discard, nil, r, http1.Body{Kind: http1.Sized, Length: 5}, brokenMeter{}); err == nil {
		t.Error("no error")
	}
}
