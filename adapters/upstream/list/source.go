package list

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"agentproxy/domain/procurement"
)

// Source is where the lines of a list come from.
type Source interface {
	// Load returns the lines, or false if they are as at the last call that returned some.
	// An error keeps what was loaded before; it repeats no secret.
	Load(ctx context.Context) (lines []Line, changed bool, err error)
	// Due reports whether it is time to load again.
	Due(now time.Time) bool
}

// errFaults joins the faults of a list with what the list is called in front of each.
// Without a fault the list is empty, which would end what is sold from it.
func errFaults(name string, faults []Fault) error {
	if len(faults) == 0 {
		return errors.New(name + ": has no proxy")
	}
	var list []error
	for _, f := range faults {
		list = append(list, errors.New(name+": "+f.Error()))
	}
	return errors.Join(list...)
}

// file is a list in a file, which is read again when it has changed.
type file struct {
	path string
	read fs.FileInfo // at the last load; nil before
}

// Due always returns true: looking at a file costs nothing.
func (f *file) Due(time.Time) bool { return true }

// Load reads the file if it is another one than before by name, size or time.
func (f *file) Load(context.Context) ([]Line, bool, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, false, errors.New("options.file: cannot be read: " + reason(err))
	}
	if f.read != nil && os.SameFile(f.read, info) && f.read.Size() == info.Size() &&
		f.read.ModTime().Equal(info.ModTime()) {
		return nil, false, nil
	}
	if info.IsDir() {
		return nil, false, errors.New("options.file: is a folder")
	}
	text, err := bounded(f.path)
	if err != nil {
		return nil, false, errors.New("options.file: cannot be read: " + reason(err))
	}
	f.read = info // a faulty file is reported once and not at each look
	lines, faults := Parse(text)
	if len(faults) > 0 || len(lines) == 0 {
		return nil, false, errFaults("options.file", faults)
	}
	return lines, true, nil
}

func bounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// reason returns why a file cannot be read, without its name.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// remote is a list at a URL, which may hold a credential.
type remote struct {
	url    string
	every  time.Duration
	client *http.Client
	now    func() time.Time

	next               time.Time
	etag, lastModified string
}

// fetchTimeout is the timeout of one download.
const fetchTimeout = 30 * time.Second

var errURL = errors.New("secrets.url must be an https URL; http is for loopback addresses alone")

func newRemote(text string, every time.Duration, now func() time.Time) (*remote, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil, errURL
	}
	// A redirect would carry the credential elsewhere.
	return &remote{url: text, every: every, now: now, client: &http.Client{Timeout: fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// loopback reports whether the list is this host's own, so that it may name such hosts.
func (r *remote) loopback() bool { return strings.HasPrefix(r.url, "http://") }

// Due reports whether the period is over. After a failure it is a minute.
func (r *remote) Due(now time.Time) bool { return !now.Before(r.next) }

// Load downloads the list, unless the server answers that it has not changed.
func (r *remote) Load(ctx context.Context) ([]Line, bool, error) {
	r.next = r.now().Add(min(time.Minute, r.every))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, false, errURL
	}
	req.Header.Set("Accept", "text/plain, text/csv, */*")
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}
	if r.lastModified != "" {
		req.Header.Set("If-Modified-Since", r.lastModified)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, false, fetchError(err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		r.next = r.now().Add(r.every)
		return nil, false, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, false, procurement.Refuse(procurement.Auth, "the server of the list refuses the URL: "+res.Status)
	default:
		return nil, false, procurement.Refuse(procurement.Temporary, "the server of the list answered "+res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxBytes+1))
	if err != nil {
		return nil, false, fetchError(err)
	}
	lines, faults := Parse(text)
	if len(faults) > 0 || len(lines) == 0 {
		return nil, false, errFaults("the list", faults)
	}
	r.next = r.now().Add(r.every)
	r.etag, r.lastModified = res.Header.Get("ETag"), res.Header.Get("Last-Modified")
	return lines, true, nil
}

// fetchError returns a failure without the URL, which may hold a credential.
func fetchError(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return procurement.Refuse(procurement.TimedOut, "the server of the list does not answer")
		}
		err = e.Err
	}
	text := "the list cannot be downloaded"
	if e, ok := errors.AsType[*net.OpError](err); ok {
		text += ": " + e.Op + ": " + strings.TrimPrefix(e.Err.Error(), e.Op+": ")
	}
	return procurement.Refuse(procurement.Temporary, text)
}
