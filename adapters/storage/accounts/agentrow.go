package accounts

import (
	"agentproxy/adapters/storage/column"
	"agentproxy/domain/account"
)

// agentRow is a row of agents, as GORM writes it.
type agentRow struct {
	ID               string
	BillingUserID    string
	Name             string
	ContactEmail     string
	WebhookURL       string
	Description      string
	Status           string
	DisabledFor      string
	VerifiedFor      string
	KeyHash          []byte
	KeyHint          string
	KeyCreatedAt     int64
	KeyUsedAt        int64
	SecretHash       []byte
	SecretHeldUntil  int64
	FormerSecretHash []byte
	TokenVersion     int64
	WebhookVersion   int64
	PerMinute        *int
	ReferrerID       string
	RegisteredFrom   []byte
	RegisteredWith   string
	CreatedAt        int64 `gorm:"autoCreateTime:false"`
	UpdatedAt        int64 `gorm:"autoUpdateTime:false"`
}

func (agentRow) TableName() string { return "agents" }

func toAgentRow(a account.Agent) agentRow {
	return agentRow{
		ID:               a.ID,
		BillingUserID:    a.BillingUserID,
		Name:             a.Name,
		ContactEmail:     a.ContactEmail,
		WebhookURL:       a.WebhookURL,
		Description:      a.Description,
		Status:           string(a.Status),
		DisabledFor:      a.DisabledFor,
		VerifiedFor:      a.VerifiedFor,
		KeyHash:          column.Bytes(a.KeyHash),
		KeyHint:          a.KeyHint,
		KeyCreatedAt:     column.Micros(a.KeyCreatedAt),
		KeyUsedAt:        column.Micros(a.KeyUsedAt),
		SecretHash:       column.Bytes(a.SecretHash),
		SecretHeldUntil:  column.Micros(a.SecretHeldUntil),
		FormerSecretHash: column.Bytes(a.FormerSecretHash),
		TokenVersion:     a.TokenVersion,
		WebhookVersion:   a.WebhookVersion,
		PerMinute:        a.PerMinute,
		ReferrerID:       a.Referrer.ID,
		RegisteredFrom:   column.Address(a.Origin.Addr),
		RegisteredWith:   a.Origin.UserAgent,
		CreatedAt:        column.Micros(a.CreatedAt),
		UpdatedAt:        column.Micros(a.UpdatedAt),
	}
}

// ScanAgent scans a row of AgentSelect.
func ScanAgent(found interface{ Scan(...any) error }) (account.Agent, error) {
	var r agentRow
	var f referrerRow
	err := found.Scan(&r.ID, &r.BillingUserID, &r.Name, &r.ContactEmail, &r.WebhookURL, &r.Description, &r.Status,
		&r.DisabledFor, &r.VerifiedFor, &r.KeyHash, &r.KeyHint, &r.KeyCreatedAt, &r.KeyUsedAt, &r.SecretHash,
		&r.SecretHeldUntil, &r.FormerSecretHash, &r.TokenVersion, &r.WebhookVersion,
		&r.PerMinute, &r.RegisteredFrom, &r.RegisteredWith, &r.CreatedAt, &r.UpdatedAt, &f.ID, &f.Name,
		&f.Code, &f.IsDefault, &f.Disabled)
	if err != nil {
		return account.Agent{}, err
	}
	if len(r.FormerSecretHash) == 0 {
		r.FormerSecretHash = nil
	}
	return account.Agent{
		ID:               r.ID,
		BillingUserID:    r.BillingUserID,
		Name:             r.Name,
		ContactEmail:     r.ContactEmail,
		WebhookURL:       r.WebhookURL,
		Description:      r.Description,
		Status:           account.Status(r.Status),
		DisabledFor:      r.DisabledFor,
		VerifiedFor:      r.VerifiedFor,
		KeyHash:          r.KeyHash,
		KeyHint:          r.KeyHint,
		KeyCreatedAt:     column.Time(r.KeyCreatedAt),
		KeyUsedAt:        column.Time(r.KeyUsedAt),
		SecretHash:       r.SecretHash,
		SecretHeldUntil:  column.Time(r.SecretHeldUntil),
		FormerSecretHash: r.FormerSecretHash,
		TokenVersion:     r.TokenVersion,
		WebhookVersion:   r.WebhookVersion,
		PerMinute:        r.PerMinute,
		Referrer:         fromReferrerRow(f),
		Origin:           account.Origin{Addr: column.Addr(r.RegisteredFrom), UserAgent: r.RegisteredWith},
		CreatedAt:        column.Time(r.CreatedAt),
		UpdatedAt:        column.Time(r.UpdatedAt),
	}, nil
}
