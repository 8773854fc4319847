// Package reveals makes links that show the proxy credentials of a session once, so that a
// program gets them and the model that runs it does not.
package reveals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Lifetime is how long a link works. It is below idempotency.Retention, after which keys are purged.
const Lifetime = 5 * time.Minute

// Refusals of a link.
var (
	ErrUsed = &domain.Error{Kind: domain.Gone, Code: "REVEAL_LINK_USED",
		Message: "the link was used already, is older than 5 minutes, or its password or key was replaced; ask for a new one"}
	ErrUnknown = &domain.Error{Kind: domain.NotFound, Code: "REVEAL_LINK_UNKNOWN",
		Message: "there is no such link; copy all of it, or ask for a new one"}
)

// issued is the path of the keys under which links are kept among the Idempotency-Keys, with no
// agent: a link is found by itself alone. The key is a hash, so that the table opens nothing.
const issued = "/v1/reveal"

// Service makes links and returns the sessions that they show.
type Service struct {
	store    ports.Unit[Repos]
	clock    ports.Clock
	ids      ports.IDs
	secrets  ports.Secrets
	sessions *sessions.Service
	keys     accounts.Keys
}

// New returns the use cases.
func New(store ports.Store, clock ports.Clock, ids ports.IDs, secrets ports.Secrets, sessions *sessions.Service,
	a *accounts.Service) *Service {
	return &Service{store: narrow(store), clock: clock, ids: ids, secrets: secrets, sessions: sessions, keys: a.Keys}
}

// Link is a link that works once.
type Link struct {
	Token   string // more than 128 random bits, as letters and digits
	Expires time.Time
}

// binding is what a link is for, as JSON. The link ends with the password and with the key that requested it.
type binding struct {
	Agent    string `json:"agent"`
	Password int    `json:"password"` // its number
	Key      []byte `json:"key"`      // accounts.Caller.KeyTag
}

// Issue makes a link to the credentials of an active session.
func (s *Service) Issue(ctx context.Context, c accounts.Caller, sessionID string) (Link, error) {
	v, err := s.read(ctx, c.AgentID, sessionID)
	if err != nil {
		return Link{}, err
	}
	bound, err := json.Marshal(binding{c.AgentID, v.PasswordNo, c.KeyTag()})
	if err != nil {
		return Link{}, fmt.Errorf("bind a link: %w", err)
	}
	l := Link{Token: s.secrets.Tagged(s.ids.New("") + s.ids.New("")[:8]), Expires: s.clock.Now().Add(Lifetime)}
	err = s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		return tx.Idempotency().Keep(ctx, ports.Call{Path: issued, Key: keyOf(l.Token), Request: bound,
			Resource: sessionID, Outcome: ports.InFlight, CreatedAt: l.Expires.Add(-Lifetime)})
	})
	return l, err
}

// keyOf returns the key of a link.
func keyOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Redeem returns the session of a link, once, and lists that in the session's event log. A session
// that cannot be shown at the moment leaves the link unused.
func (s *Service) Redeem(ctx context.Context, token string) (v sessions.View, err error) {
	if !s.secrets.IsTagged(token) { // made up: nothing is looked up
		return v, ErrUnknown
	}
	var link ports.Call
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		link, err = s.findUnused(ctx, tx, token)
		return err
	})
	if err != nil {
		return v, err
	}
	if v, err = s.bound(ctx, link); err != nil {
		return v, err
	}
	err = s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if _, err := s.findUnused(ctx, tx, token); err != nil { // another call may have used it
			return err
		}
		if err := tx.Idempotency().SetOutcome(ctx, "", issued, link.Key, link.Resource, ports.Completed); err != nil {
			return err
		}
		return tx.Events().Append(ctx, link.Resource, []eventlog.Event{{ID: s.ids.New(eventlog.IDPrefix),
			At: s.clock.Now(), Source: eventlog.Service, Type: eventlog.Revealed, LatencyMS: -1}})
	})
	return v, err
}

// bound returns the session of a link whose password and key are those for which it was issued.
func (s *Service) bound(ctx context.Context, link ports.Call) (v sessions.View, err error) {
	var b binding
	if err := json.Unmarshal(link.Request, &b); err != nil {
		return v, ErrUsed // of an early version, so older than Lifetime soon
	}
	if v, err = s.read(ctx, b.Agent, link.Resource); err != nil {
		return v, err // the session was active, so it can only be over
	}
	live := true
	if len(b.Key) > 0 {
		live, err = s.keys.Live(ctx, b.Agent, b.Key)
	}
	if err == nil && (!live || v.PasswordNo != b.Password) {
		err = ErrUsed
	}
	return v, err
}

// findUnused returns a link that was not used and is not too old. In a unit that updates, it waits for
// other units that look for the same link.
func (s *Service) findUnused(ctx context.Context, tx Repos, token string) (ports.Call, error) {
	now := s.clock.Now()
	link, found, err := tx.Idempotency().Find(ctx, "", issued, keyOf(token), now.Add(-idempotency.Retention))
	switch {
	case err != nil:
		return link, err
	case !found:
		return link, ErrUnknown
	case link.Outcome != ports.InFlight || now.Sub(link.CreatedAt) >= Lifetime:
		return link, ErrUsed
	}
	return link, nil
}

// Reveal returns the session whose credentials an answer shows, and lists that in its event log.
func (s *Service) Reveal(ctx context.Context, c accounts.Caller, sessionID string) (sessions.View, error) {
	l, err := s.Issue(ctx, c, sessionID)
	if err != nil {
		return sessions.View{}, err
	}
	return s.Redeem(ctx, l.Token)
}

// read returns an active session with its credentials.
func (s *Service) read(ctx context.Context, agentID, sessionID string) (sessions.View, error) {
	v, err := s.sessions.Read(ctx, agentID, sessionID)
	switch {
	case err != nil:
		return v, err
	case v.Status == session.Creating:
		return v, session.ErrNotReady
	case v.Status.Over():
		return v, session.ErrOver.Msgf("the session is %s; create a new one", v.Status)
	case v.Direct != nil && len(v.Direct) < len(v.Exits):
		return v, domain.ErrUnavailable.Msgf("the provider does not name the proxy at the moment; try again shortly")
	}
	return v, nil
}
