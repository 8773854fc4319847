package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"time"
)

// static has the style sheet and the scripts. htmx 4.0.1 and uPlot 1.6.32 are the files of their npm
// packages, unchanged, with their licences.
//
//go:embed static
var static embed.FS

// assetFile is a file that is served.
type assetFile struct {
	text    []byte
	kind    string
	version string // changes with the text
}

var assets = func() map[string]assetFile {
	all := map[string]assetFile{}
	entries, err := static.ReadDir("static")
	if err != nil {
		panic("ui: " + err.Error())
	}
	for _, e := range entries {
		text, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic("ui: " + err.Error())
		}
		sum := sha256.Sum256(text)
		kind := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
			".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}[path.Ext(e.Name())]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(e.Name()))
		}
		all[e.Name()] = assetFile{text, kind, hex.EncodeToString(sum[:6])}
	}
	return all
}()

// asset returns the URL of a file below the path of a console. It changes with the file.
func asset(base, name string) string { return base + "/assets/" + name + "?v=" + assets[name].version }

// Assets serves the files of the layout at {name} of a pattern such as "GET /console/assets/{name}".
func Assets(w http.ResponseWriter, r *http.Request) {
	f, ok := assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", `W/"`+f.version+`"`) // weak: it is the same compressed
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == f.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.text))
}
