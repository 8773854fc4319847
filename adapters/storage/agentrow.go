package storage

import (
	"net/netip"

	"agentproxy/domain/account"
)

// agentRow is a row of agents, as GORM writes it.
type agentRow struct {
	ID             string
	BillingUserID  string
	Name           string
	ContactEmail   string
	WebhookURL     string
	Description    string
	Status         string
	DisabledFor    string
	VerifiedFor    string
	KeyHash        []byte
	KeyHint        string
	KeyCreatedAt   int64
	KeyUsedAt      int64
	SecretHash     []byte
	TokenVersion   int64
	WebhookVersion int64
	PerMinute      *int
	ReferrerID     string
	RegisteredFrom []byte
	RegisteredWith string
	CreatedAt      int64 `gorm:"autoCreateTime:false"`
	UpdatedAt      int64 `gorm:"autoUpdateTime:false"`
}

func (agentRow) TableName() string { return "agents" }

func toAgentRow(a account.Agent) agentRow {
	return agentRow{
		ID:             a.ID,
		BillingUserID:  a.BillingUserID,
		Name:           a.Name,
		ContactEmail:   a.ContactEmail,
		WebhookURL:     a.WebhookURL,
		Description:    a.Description,
		Status:         string(a.Status),
		DisabledFor:    a.DisabledFor,
		VerifiedFor:    a.VerifiedFor,
		KeyHash:        bytesOf(a.KeyHash),
		KeyHint:        a.KeyHint,
		KeyCreatedAt:   micros(a.KeyCreatedAt),
		KeyUsedAt:      micros(a.KeyUsedAt),
		SecretHash:     bytesOf(a.SecretHash),
		TokenVersion:   a.TokenVersion,
		WebhookVersion: a.WebhookVersion,
		PerMinute:      a.PerMinute,
		ReferrerID:     a.Referrer.ID,
		RegisteredFrom: addressBytes(a.Origin.Addr),
		RegisteredWith: a.Origin.UserAgent,
		CreatedAt:      micros(a.CreatedAt),
		UpdatedAt:      micros(a.UpdatedAt),
	}
}

// scanAgent takes a row of agentSelect.
func scanAgent(found interface{ Scan(...any) error }) (account.Agent, error) {
	var r agentRow
	var f referrerRow
	err := found.Scan(&r.ID, &r.BillingUserID, &r.Name, &r.ContactEmail, &r.WebhookURL, &r.Description, &r.Status,
		&r.DisabledFor, &r.VerifiedFor, &r.KeyHash, &r.KeyHint, &r.KeyCreatedAt, &r.KeyUsedAt, &r.SecretHash, &r.TokenVersion,
		&r.WebhookVersion, &r.PerMinute, &r.RegisteredFrom, &r.RegisteredWith, &r.CreatedAt, &r.UpdatedAt, &f.ID, &f.Name,
		&f.Code, &f.IsDefault, &f.Disabled)
	if err != nil {
		return account.Agent{}, err
	}
	return account.Agent{
		ID:             r.ID,
		BillingUserID:  r.BillingUserID,
		Name:           r.Name,
		ContactEmail:   r.ContactEmail,
		WebhookURL:     r.WebhookURL,
		Description:    r.Description,
		Status:         account.Status(r.Status),
		DisabledFor:    r.DisabledFor,
		VerifiedFor:    r.VerifiedFor,
		KeyHash:        r.KeyHash,
		KeyHint:        r.KeyHint,
		KeyCreatedAt:   fromMicros(r.KeyCreatedAt),
		KeyUsedAt:      fromMicros(r.KeyUsedAt),
		SecretHash:     r.SecretHash,
		TokenVersion:   r.TokenVersion,
		WebhookVersion: r.WebhookVersion,
		PerMinute:      r.PerMinute,
		Referrer:       fromReferrerRow(f),
		Origin:         account.Origin{Addr: addressOf(r.RegisteredFrom), UserAgent: r.RegisteredWith},
		CreatedAt:      fromMicros(r.CreatedAt),
		UpdatedAt:      fromMicros(r.UpdatedAt),
	}, nil
}

// addressBytes returns how an address is stored: 16 bytes, so that a network is a range of them;
// none for no address.
func addressBytes(a netip.Addr) []byte {
	if !a.IsValid() {
		return []byte{}
	}
	b := a.As16()
	return b[:]
}

func addressOf(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

// addressRange returns the first and the last address of a network, as they are stored.
func addressRange(p netip.Prefix) (first, last []byte) {
	b, bits := p.Masked().Addr().As16(), p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	end := b
	for i := bits; i < 128; i++ {
		end[i/8] |= 1 << (7 - i%8)
	}
	return b[:], end[:]
}
