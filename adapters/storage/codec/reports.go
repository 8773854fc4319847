package codec

import (
	"encoding/binary"
	"errors"

	"agentproxy/domain/traffic"
)

// The reports of a part are two values: the ids, which stay as long as the leases do, and behind them the counters. A
// new version of the row then differs from the last one in the counters alone, which PostgreSQL uses in its log. An id
// is its length in one byte and the text; a counter is a varint.

var errReports = errors.New("the reports of leases are damaged")

// AppendReportIDs appends the ids of reports to b.
func AppendReportIDs(b []byte, list []traffic.Report) []byte {
	for _, r := range list {
		for _, id := range [...]string{r.AgentID, r.SessionID, r.Lease} {
			b = append(append(b, byte(len(id))), id...)
		}
	}
	return b
}

// AppendReportCounts appends the counters of reports to b.
func AppendReportCounts(b []byte, list []traffic.Report) []byte {
	for _, r := range list {
		for _, n := range [...]int64{r.Up, r.Down, r.Connections} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}

// DecodeReports returns the reports whose ids and counters were appended.
func DecodeReports(ids, counts []byte) (list []traffic.Report, err error) {
	for len(ids) > 0 {
		var r traffic.Report
		for _, id := range [...]*string{&r.AgentID, &r.SessionID, &r.Lease} {
			if len(ids) == 0 || len(ids) <= int(ids[0]) {
				return nil, errReports
			}
			end := 1 + int(ids[0])
			*id, ids = string(ids[1:end]), ids[end:]
		}
		for _, n := range [...]*int64{&r.Up, &r.Down, &r.Connections} {
			v, size := binary.Uvarint(counts)
			if size <= 0 || int64(v) < 0 {
				return nil, errReports
			}
			*n, counts = int64(v), counts[size:]
		}
		list = append(list, r)
	}
	if len(counts) > 0 {
		return nil, errReports
	}
	return list, nil
}
