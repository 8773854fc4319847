package iproyal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"agentproxy/domain"
	"agentproxy/test/fake/seller"
)

const gigabyte = 1_000_000_000

// bytesOf converts a number of GB to bytes.
func bytesOf(n json.Number) (int64, bool) {
	b, err := domain.ParseDecimal(n.String(), 9)
	return b, err == nil && b >= 0
}

func showUser(u *SubUser) map[string]any {
	gb := func(n int64) json.Number { return json.Number(domain.FormatDecimal(n, 9)) }
	return map[string]any{"id": 5, "hash": u.Hash, "username": u.User, "password": u.Password,
		"traffic_available": gb(u.Available), "traffic_used": gb(u.Used)}
}

func (s *Seller) postUser(w http.ResponseWriter, r *http.Request) {
	var in struct {
		User     string      `json:"username"`
		Password string      `json:"password"`
		Traffic  json.Number `json:"traffic"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		seller.Answer(w, http.StatusBadRequest, map[string]any{"message": "Malformed JSON."})
		return
	}
	bytes, ok := bytesOf(in.Traffic)
	taken := false
	for _, u := range s.users {
		taken = taken || u.User == in.User
	}
	switch {
	case in.User == "" || len(in.Password) < 8 || !ok:
		s.refuse(w, "username", "The given data was invalid.")
	case taken:
		s.refuse(w, "username", "The username has already been taken.")
	case seller.FaultOf(r.Context()) == seller.NoFunds || bytes > s.traffic:
		s.refuse(w, "traffic", "Not enough traffic.")
	default:
		s.Sold(r)
		s.made++
		u := &SubUser{Hash: fmt.Sprintf("01HQ5K3P97DY8EX9Y9%08X", s.made), User: in.User, Password: in.Password, Available: bytes}
		s.traffic -= bytes
		s.users[u.Hash] = u
		s.one(w, showUser(u))
	}
}

func (s *Seller) listUsers(w http.ResponseWriter, r *http.Request) {
	var found []*SubUser
	for _, u := range s.users {
		if strings.Contains(u.User, r.URL.Query().Get("search")) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *SubUser) int { return strings.Compare(a.Hash, b.Hash) })
	list := []map[string]any{}
	for _, u := range found {
		list = append(list, showUser(u))
	}
	seller.Answer(w, http.StatusOK, pageOf(r, list, 20))
}

// byHash returns the sub-user of a request, or answers 404.
func (s *Seller) byHash(w http.ResponseWriter, r *http.Request) *SubUser {
	u := s.users[r.PathValue("hash")]
	if u == nil {
		seller.Answer(w, http.StatusNotFound, map[string]any{"message": "Sub-user not found."})
	}
	return u
}

func (s *Seller) getUser(w http.ResponseWriter, r *http.Request) {
	if u := s.byHash(w, r); u != nil {
		s.one(w, showUser(u))
	}
}

// deleteUser returns the unused traffic to the account.
func (s *Seller) deleteUser(w http.ResponseWriter, r *http.Request) {
	if u := s.byHash(w, r); u != nil {
		s.traffic += u.Available
		delete(s.users, u.Hash)
		w.WriteHeader(http.StatusNoContent)
	}
}

// takeTraffic moves unused traffic of a sub-user back to the account.
func (s *Seller) takeTraffic(w http.ResponseWriter, r *http.Request) {
	u := s.byHash(w, r)
	if u == nil {
		return
	}
	var in struct {
		Amount json.Number `json:"amount"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	bytes, ok := bytesOf(in.Amount)
	switch {
	case !ok || bytes == 0:
		s.refuse(w, "amount", "The amount is invalid.")
	case bytes > u.Available:
		s.refuse(w, "amount", "Not enough traffic.")
	default:
		u.Available -= bytes
		s.traffic += bytes
		s.one(w, showUser(u))
	}
}
