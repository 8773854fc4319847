package procurement

// Remembered returns the number of parties whose turns are stored.
func (q *FairQueue[T]) Remembered() int { return len(q.used) }
