package throttle

// Used returns what an agent had stored today by this process.
func (s *Stored) Used(agentID string) int64 {
	a := s.by(agentID)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}
