// Package syncbuffer has the buffer that tests let programs and servers log to.
package syncbuffer

import (
	"bytes"
	"sync"
)

// Buffer is a bytes.Buffer that goroutines may write while others read it. Its zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
