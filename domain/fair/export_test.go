package fair

// Remembered returns the number of parties whose turns are stored.
func (q *Queue[T]) Remembered() int { return len(q.used) }

// Owners returns the number of owners that have a semaphore.
func (s *Semaphores) Owners() int { return len(s.of) }
