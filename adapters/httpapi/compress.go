package httpapi

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// compressAbove is the longest answer in bytes that is never compressed.
const compressAbove = 1 << 10

// compress compresses what a handler answers for clients that accept it. The fastest level takes a
// session to a third; higher ones cost more time than the rest of the call.
func compress(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(compressAbove+1), gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.EnableZstd(false))
	if err != nil {
		panic("httpapi: " + err.Error()) // its options contradict each other
	}
	return wrap(h)
}
