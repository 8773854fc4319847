package ports

// Watcher is notified of changes after they were committed, by this process at once
// and by others within a second. It must not block. An empty id means that
// anything may have changed.
type Watcher interface {
	AgentChanged(agentID string)
	SessionChanged(sessionID string)
}

// FeedWatcher is notified like a Watcher of agents that have another event.
type FeedWatcher interface {
	FeedGrew(agentID string)
}
