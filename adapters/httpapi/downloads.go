package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/domain"
)

// downloadTime is how long a client may take for a program, which has some 20 MB.
const downloadTime = 15 * time.Minute

// platforms are what apx is built for.
var platforms = []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64", "windows-arm64"}

// download is a program that clients can have.
type download struct {
	folder *os.Root
	name   string
	mu     sync.Mutex
	of     fs.FileInfo // that sum was taken of
	sum    string
}

// serveDownloads serves the programs that are in the folder of downloads, each with its checksum, and returns the
// platforms that they are for. A request names a program of the table above: no other file is ever opened.
func (s *Server) serveDownloads() (offered []string) {
	if s.cfg.Downloads == "" {
		return nil
	}
	folder, err := os.OpenRoot(s.cfg.Downloads)
	if err != nil {
		s.Log.Warn("apx cannot be downloaded", slog.Any("err", err))
		return nil
	}
	for _, platform := range platforms {
		d := &download{folder: folder, name: "apx-" + platform}
		if info, err := folder.Stat(d.name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		offered = append(offered, platform)
		s.both("/download/"+d.name, func(g *gin.Context) { s.download(g, d.program) })
		s.both("/download/"+d.name+".sha256", func(g *gin.Context) { s.download(g, d.checksum) })
		s.api.AddPaths("/download/"+d.name, "/download/"+d.name+".sha256")
	}
	return offered
}

// download answers a file of the folder, or 503 where it cannot be read any more.
func (s *Server) download(g *gin.Context, serve func(http.ResponseWriter, *http.Request) error) {
	h := g.Writer.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set(gzhttp.HeaderNoCompression, "1") // a part of it would be another part
	_ = http.NewResponseController(g.Writer).SetWriteDeadline(time.Now().Add(downloadTime))
	if err := serve(g.Writer, g.Request); err != nil {
		s.Log.Error("a download failed", slog.Any("err", err))
		s.api.Refuse(endpoint.CallOf(g), domain.ErrUnavailable.Msgf("the file cannot be read at the moment"))
	}
}

func (d *download) program(w http.ResponseWriter, r *http.Request) error {
	f, err := d.folder.Open(d.name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	saved := "apx"
	if strings.Contains(d.name, "-windows-") {
		saved += ".exe"
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+saved+`"`)
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// checksum answers what sha256sum --check reads.
func (d *download) checksum(w http.ResponseWriter, r *http.Request) error {
	sum, err := d.digest()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(fmt.Sprintf("%s  %s\n", sum, d.name)))
	return nil
}

// digest returns the digest of the file, which is read again where it was replaced.
func (d *download) digest() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.folder.Open(d.name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if d.of != nil && os.SameFile(d.of, info) && d.of.Size() == info.Size() && d.of.ModTime().Equal(info.ModTime()) {
		return d.sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	d.of, d.sum = info, hex.EncodeToString(h.Sum(nil))
	return d.sum, nil
}
