package procurement

// Remembered returns the number of parties whose turns are stored.
func (l *FairQueue[T]) Remembered() int { return len(l.used) }
