package procurement

// Remembered returns of how many parties the turns are remembered.
func (l *FairQueue[T]) Remembered() int { return len(l.used) }
