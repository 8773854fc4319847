package procurement

// Remembered returns of how many parties the turns are remembered.
func (l *Line[T]) Remembered() int { return len(l.used) }
