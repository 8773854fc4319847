package feed

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"agentproxy/domain/webhook"
)

// A cursor is a place, the second from which on nothing behind it may be missing, and a tag that only the service
// computes and that has the agent in it.
const (
	cursorPrefix = "ev_"
	cursorFields = 8 + 5
	cursorTag    = 11
)

func (s *Service) sealCursor(agentID string, place int64, at time.Time) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, cursorFields+cursorTag), uint64(place))
	var seconds [8]byte
	binary.BigEndian.PutUint64(seconds[:], uint64(at.Unix()))
	b = append(b, seconds[3:]...)
	tag := s.secrets.Hash(cursorText(agentID, b))
	return cursorPrefix + base64.RawURLEncoding.EncodeToString(append(b, tag[:cursorTag]...))
}

// openCursor returns the place of a cursor, 0 for an empty text.
func (s *Service) openCursor(agentID, text string, now time.Time) (place int64, err error) {
	if text == "" {
		return 0, nil
	}
	text, ok := strings.CutPrefix(text, cursorPrefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(b) != cursorFields+cursorTag {
		return 0, errCursor
	}
	fields, tag, same := b[:cursorFields], b[cursorFields:], false
	for _, sum := range s.secrets.Hashes(cursorText(agentID, fields)) {
		same = same || hmac.Equal(sum[:cursorTag], tag)
	}
	seconds := binary.BigEndian.Uint64(append(make([]byte, 3), fields[8:]...))
	if !same || now.Sub(time.Unix(int64(seconds), 0)) >= webhook.Keep {
		return 0, errCursor
	}
	return int64(binary.BigEndian.Uint64(fields)), nil
}

func cursorText(agentID string, fields []byte) string {
	return "event feed\n" + agentID + "\n" + string(fields)
}
