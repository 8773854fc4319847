package exitlogs

// Waiting returns how many records wait to be stored.
func (l *Log) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.fresh) + len(l.waiting)
}
