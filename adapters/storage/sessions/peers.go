package sessions

import (
	"context"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// peers keeps the clients and the hosts of sessions.
type peers struct{ *work.Unit }

// Peers returns the clients and the hosts of sessions in a unit.
func Peers(u *work.Unit) ports.Peers { return peers{u} }

// Beyond their bound clients and hosts are counted under the empty name. Two replicas that add at the
// same time may exceed it by what each of them adds.
const (
	addClient = `INSERT INTO session_clients (session, address, first_at, last_at, connections, bytes)
		SELECT s.seq, CASE WHEN EXISTS (SELECT 1 FROM session_clients c WHERE c.session = s.seq AND c.address = ?2)
			OR (SELECT COUNT(*) FROM session_clients c WHERE c.session = s.seq) < ?7 THEN ?2 ELSE '' END, ?3, ?4, ?5, ?6
		FROM sessions s WHERE s.id = ?1
		ON CONFLICT (session, address) DO UPDATE SET
		first_at = CASE WHEN excluded.first_at < session_clients.first_at THEN excluded.first_at
			ELSE session_clients.first_at END,
		last_at = CASE WHEN excluded.last_at > session_clients.last_at THEN excluded.last_at
			ELSE session_clients.last_at END,
		connections = session_clients.connections + excluded.connections,
		bytes = session_clients.bytes + excluded.bytes`

	addHost = `INSERT INTO session_hosts (session, day, host, connections, failures, bytes)
		SELECT s.seq, ?2, CASE WHEN EXISTS (SELECT 1 FROM session_hosts h
				WHERE h.session = s.seq AND h.day = ?2 AND h.host = ?3)
			OR (SELECT COUNT(*) FROM session_hosts h WHERE h.session = s.seq AND h.day = ?2) < ?7 THEN ?3 ELSE '' END,
			?4, ?5, ?6
		FROM sessions s WHERE s.id = ?1
		ON CONFLICT (session, day, host) DO UPDATE SET
		connections = session_hosts.connections + excluded.connections,
		failures = session_hosts.failures + excluded.failures, bytes = session_hosts.bytes + excluded.bytes`
)

func (r peers) Add(_ context.Context, sessionID string, day time.Time, p *traffic.Peers) error {
	for _, c := range p.Clients() {
		err := r.Later("add a client of "+sessionID, addClient, sessionID, c.Address,
			column.Micros(c.FirstAt), column.Micros(c.LastAt), c.Connections, c.Bytes, traffic.MaxClients)
		if err != nil {
			return err
		}
	}
	for _, h := range p.Hosts() {
		err := r.Later("add a host of "+sessionID, addHost, sessionID, column.Micros(day), h.Name, h.Connections, h.Failures,
			h.Bytes, traffic.MaxHosts)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r peers) Clients(ctx context.Context, sessionID string) (list []traffic.Client, err error) {
	err = r.Rows(ctx, `SELECT c.address, c.first_at, c.last_at, c.connections, c.bytes FROM session_clients c
		JOIN sessions s ON s.seq = c.session WHERE s.id = ?1 ORDER BY c.last_at DESC, c.address`, []any{sessionID},
		func(row engine.Row) error {
			var c traffic.Client
			var first, last int64
			err := row.Scan(&c.Address, &first, &last, &c.Connections, &c.Bytes)
			c.FirstAt, c.LastAt = column.Time(first), column.Time(last)
			list = append(list, c)
			return err
		})
	return list, work.Wrap("list clients of "+sessionID, err)
}

func (r peers) Hosts(ctx context.Context, sessionID string, since time.Time) (list []traffic.Host, err error) {
	err = r.Rows(ctx, `SELECT h.host, SUM(h.connections), SUM(h.failures), SUM(h.bytes) FROM session_hosts h
		JOIN sessions s ON s.seq = h.session WHERE s.id = ?1 AND h.day >= ?2
		GROUP BY h.host ORDER BY SUM(h.bytes) DESC, SUM(h.connections) DESC, h.host`, []any{sessionID, column.Micros(since)},
		func(row engine.Row) error {
			var h traffic.Host
			err := row.Scan(&h.Name, &h.Connections, &h.Failures, &h.Bytes)
			list = append(list, h)
			return err
		})
	return list, work.Wrap("list hosts of "+sessionID, err)
}

func (r peers) Purge(_ context.Context, clients, hosts time.Time, limit int) (int, error) {
	n, err := r.Exec(`DELETE FROM session_clients WHERE (session, address) IN (
		SELECT session, address FROM session_clients WHERE last_at < ?1 ORDER BY last_at LIMIT ?2)`,
		column.Micros(clients), limit)
	if err != nil {
		return 0, work.Wrap("purge clients", err)
	}
	m, err := r.Exec(`DELETE FROM session_hosts WHERE (session, day, host) IN (
		SELECT session, day, host FROM session_hosts WHERE day < ?1 ORDER BY day LIMIT ?2)`, column.Micros(hosts), limit)
	return int(max(n, m)), work.Wrap("purge hosts", err)
}
